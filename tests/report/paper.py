"""Reads what Chromium prints: the text of every page of a PDF, so that a test knows what stands on which sheet."""

import re
import unicodedata
import zlib


def sheets(document):
    """The text of every page without any space, as letters were drawn; for PDFs of Chromium (Skia) alone."""
    objects = {
        int(found[1]): found[2]
        for found in re.finditer(rb"(?<!\d)(\d+) 0 obj\b(.*?)\bendobj", document, re.DOTALL)
    }
    fonts = {
        number: _letters(objects, int(found[1]))
        for number, body in objects.items()
        if (found := re.search(rb"/ToUnicode (\d+)", body))
    }
    tree = next(body for body in objects.values() if re.search(rb"/Type\s*/Pages\b", body))
    pages = re.findall(rb"(\d+) 0 R", re.search(rb"/Kids\s*\[(.*?)\]", tree, re.DOTALL)[1])
    return [_text(objects, fonts, objects[int(page)]) for page in pages]


def _stream(objects, number):
    """What an object holds."""
    head, _, rest = objects[number].partition(b"stream\n")
    return zlib.decompressobj().decompress(rest) if b"FlateDecode" in head else rest


def _letters(objects, number):
    """Which letters a font's numbers stand for."""
    table, found = _stream(objects, number).decode("ascii"), {}
    for block in re.findall(r"beginbfchar(.*?)endbfchar", table, re.DOTALL):
        for code, letters in re.findall(r"<(\w+)> <(\w+)>", block):
            found[int(code, 16)] = bytes.fromhex(letters).decode("utf-16-be", "replace")
    for block in re.findall(r"beginbfrange(.*?)endbfrange", table, re.DOTALL):
        for first, last, letter in re.findall(r"<(\w+)> <(\w+)> <(\w+)>", block):
            low, high = int(first, 16), int(last, 16)
            found |= {code: chr(int(letter, 16) + code - low) for code in range(low, high + 1)}
    return found


def _text(objects, fonts, page):
    """What is drawn on a page; signs that nobody sees have no letter."""
    named = {name: int(number) for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", page)}
    content = _stream(objects, int(re.search(rb"/Contents (\d+)", page)[1]))
    text, font = "", {}
    for name, codes in re.findall(rb"/(F\d+) [\d.]+ Tf|<([0-9A-Fa-f]+)>", content):
        if name:
            font = fonts.get(named[name], {})
        else:
            text += "".join(font.get(int(codes[i : i + 4], 16), "") for i in range(0, len(codes), 4))
    return squeezed(text)


def squeezed(text):
    """A text without spaces, with every ligature as its letters."""
    return "".join(unicodedata.normalize("NFKC", text).replace("\N{WORD JOINER}", "").split())
