// SPDX-License-Identifier: Apache-2.0
// The parts of the page, and what they are built of. A file of parts/ calls `addPart` once for each part.
import { el } from "./show.js";

// {id, title, make(page)}: `make` returns {controls, content}, or null when the build has nothing to show there.
// `page` is {data, details, openFile(file), handles}; tests and other parts find in `handles` what a part puts there.
export const PARTS = [];
export function addPart(part) { PARTS.push(part); }

export function makeParts(page) {
  const made = [];
  for (const { id, title, make } of PARTS) {
    const found = make(page);
    if (found) made.push(section(id, title, found.controls ?? [], ...found.content));
  }
  return made;
}

function section(id, title, controls, ...content) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("div", { class: "head" }, el("h2", { id: `${id}-title` }, title), ...controls), ...content);
}

export function searchBox(label, onInput) {
  let waiting = 0;
  const box = el("input", { type: "search", "aria-label": label, placeholder: label, oninput: () => {
    clearTimeout(waiting); waiting = setTimeout(() => onInput(box.value), 120);
  } });
  return box;
}

export function choice(label, options, onChange) {
  const box = el("select", { onchange: () => onChange(box.value) }, ...options.map(([value, text]) => el("option", { value }, text)));
  return el("label", {}, `${label} `, box);
}

export const remark = text => el("p", { class: "remark" }, text);
