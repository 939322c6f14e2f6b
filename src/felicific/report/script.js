"use strict";
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const slider = document.getElementById("slider");
  const rules = document.getElementById("rules");
  const cells = [...document.querySelectorAll("[data-cell]")].map(
    (element) => [element, data.keys.indexOf(element.dataset.cell)]
  );
  const say = data.keys.indexOf("say");
  const marks = ["above", "below"].map((name) => document.querySelector('#choice [class*="' + name + '_"] path'));

  function show(position) {
    const texts = data.cells[position];
    for (const [element, key] of cells) element.textContent = texts[key];
    rules.replaceChildren(...data.rules[position].map((index) => {
      const item = document.createElement("li");
      item.textContent = data.texts[index];
      return item;
    }));
    const place = data.places[position];
    marks.forEach((mark, i) => mark.setAttribute("transform", "translate(" + place[0] + "," + place[i + 1] + ")"));
    slider.setAttribute("aria-valuetext", texts[say]);
    for (const button of document.querySelectorAll("[data-go]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.go) === position));
    }
  }

  // At either end the slider's thumb, 16 pixels wide, stands under the mark in the charts.
  function align() {
    const here = slider.parentNode.getBoundingClientRect().left;
    const drawn = marks[1].parentNode.getScreenCTM();
    const [first, last] = [data.places[0], data.places[data.places.length - 1]].map(
      (place) => new DOMPoint(place[0], 0).matrixTransform(drawn).x - here
    );
    if (last - first < 100) return;
    slider.style.marginLeft = first - 8 + "px";
    slider.style.width = last - first + 16 + "px";
  }

  slider.addEventListener("input", () => show(Number(slider.value)));
  for (const button of document.querySelectorAll("[data-go]")) {
    button.addEventListener("click", () => {
      slider.value = button.dataset.go;
      show(Number(slider.value));
    });
  }
  document.getElementById("control").hidden = false;
  align();
  window.addEventListener("resize", align);
  show(Number(slider.value));
})();
