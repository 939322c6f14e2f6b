"use strict";
// Swaps texts and attributes that Python wrote; it formats no number.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const last = data.at.length - 1;
  let here = data.start;

  // A long text is a frame that it shares with others, and the words that fill its blanks.
  const text = (index) => {
    const told = data.texts[index];
    if (typeof told === "string") return told;
    const [frame, ...words] = told.map((part) => data.texts[part]);
    return frame.split("\x1f").map((part, i) => (i ? words[i - 1] : "") + part).join("");
  };
  // A column is one number where all positions say the same.
  const at = (key) => {
    const column = data.columns[key];
    return text(typeof column === "number" ? column : column[here]);
  };

  const texts = [...document.querySelectorAll("[data-t]")];
  const drawn = [...document.querySelectorAll("[data-a]")].map(
    (element) => [element, element.dataset.a.split(" ").map((pair) => pair.split(":"))]
  );
  const lists = [...document.querySelectorAll("[data-l]")];
  const buttons = [...document.querySelectorAll("[data-go]")];
  const slider = document.getElementById("slider");

  function item(entry) {
    const made = document.createElement("li");
    if (entry.length === 1) {
      made.textContent = text(entry[0]);
      return made;
    }
    const [level, kind, name, words] = entry.map(text);
    const body = document.createElement("div");
    const first = document.createElement("b");
    const rest = document.createElement("span");
    first.textContent = name;
    rest.textContent = " " + words;
    body.append(first, rest);
    made.dataset.level = level;
    made.dataset.flag = kind;
    made.append(body);
    return made;
  }

  function show(position) {
    here = position;
    for (const element of texts) {
      const said = at(element.dataset.t);
      // What stays is left alone, so that nothing is read out twice.
      if (element.textContent !== said) element.textContent = said;
    }
    for (const [element, pairs] of drawn) {
      for (const [name, key] of pairs) element.setAttribute(name, at(key));
    }
    for (const list of lists) list.replaceChildren(...data.lists[list.dataset.l][position].map(item));
    if (slider) {
      slider.value = data.at[position];
      slider.setAttribute("aria-valuetext", at("say"));
    }
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.go) === position));
    }
  }

  function go(position) {
    const wanted = Math.max(0, Math.min(last, position));
    const moved = wanted !== here;
    show(wanted);
    if (!moved) return;
    try {
      history.replaceState(null, "", "#" + data.hashes[wanted]);
    } catch {
      // A notebook's frame has no address of its own.
    }
  }

  function read() {
    const wanted = data.hashes.indexOf(location.hash.slice(1));
    show(wanted < 0 ? data.start : wanted);
  }

  const nearest = (value) => data.at.reduce(
    (best, x, i) => Math.abs(x - value) < Math.abs(data.at[best] - value) ? i : best, 0
  );
  const steps = {
    ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1,
    PageDown: -5, PageUp: 5, Home: -Infinity, End: Infinity,
  };

  // What decision.json says: everything but who signed was written by Python.
  function decision() {
    const aimed = data.aimed[here];
    const position = aimed
      ? { gap: Object.fromEntries(data.gaps.map((name, j) => [name, aimed[j]])) }
      : { [data.reference]: true };
    const signed = [...document.querySelectorAll("[data-sign]")].map((input) => [input.dataset.sign, input.value]);
    return {
      ...data.decision,
      position,
      verdict: at("verdict"),
      reason: at("reason"),
      sentence: at("sentence"),
      flags: data.lists.flags[here].map((entry) => text(entry[1])),
      policy_sha256: at("sha") || null,
      signed: Object.fromEntries(signed),
    };
  }

  function save() {
    const link = document.createElement("a");
    const written = JSON.stringify(decision(), null, 1) + "\n";
    link.href = URL.createObjectURL(new Blob([written], { type: "application/json" }));
    link.download = "decision.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  if (slider) {
    slider.addEventListener("input", () => go(nearest(Number(slider.value))));
    slider.addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      go(here + steps[event.key]);
    });
  }
  for (const button of buttons) button.addEventListener("click", () => go(Number(button.dataset.go)));
  window.addEventListener("hashchange", read);
  document.getElementById("save").addEventListener("click", save);
  document.getElementById("print").addEventListener("click", () => window.print());

  // Paper has no scroll bar: it shows the whole of what was typed, and everything that is folded.
  const areas = [...document.querySelectorAll("textarea")];
  const main = document.querySelector("main");
  const full = main.classList.contains("full");
  for (const area of areas) {
    area.addEventListener("input", () => {
      area.previousElementSibling.textContent = area.value;
      main.classList.toggle("full", full || areas.some((one) => one.value.length > 120));
    });
  }
  let opened = [];
  let focused = null;
  window.addEventListener("beforeprint", () => {
    // The part of a date that has the focus would be printed as if it were marked.
    focused = document.activeElement;
    focused?.blur();
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
    focused?.focus({ preventScroll: true });
  });

  for (const element of document.querySelectorAll("[data-js]")) element.hidden = false;
  read();
})();
