// SPDX-License-Identifier: Apache-2.0
// What would make the build faster or more robust: the findings of etrace advise.
import { addPart, remark } from "../parts.js";
import { el, number, time } from "../show.js";

function evidenceLine({ details, openFile }, { text, ns, command, file }) {
  const subject = command >= 0 ? el("button", { type: "button", onclick: () => details.select(command) }, text)
    : file >= 0 ? el("button", { type: "button", onclick: () => openFile(file) }, text) : text;
  return el("li", {}, ns >= 0 ? `${time(ns)}  ` : "", subject);
}

function findingBox(page, finding) {
  const lines = finding.evidence.map(each => evidenceLine(page, each));
  if (finding.more > 0) lines.push(el("li", { class: "soft" }, `and ${number(finding.more)} more`));
  return el("details", { class: "phase finding", id: `finding-${finding.id}` }, el("summary", {}, el("b", {}, finding.title), " ", el("span", { class: "soft" }, finding.gain)),
    el("p", {}, finding.what), el("ul", { class: "links" }, ...lines), el("p", {}, finding.how), el("p", { class: "soft" }, finding.sure));
}

addPart({ id: "advice", title: "Advice", make: page => {
  const found = page.data.meta.findings;
  if (!found) return { content: [remark("Too many commands for this page to simulate: etrace advise prints the findings.")] };
  return found.length ? { content: [...found.map(each => findingBox(page, each)), remark("Gains are predicted by a simulation of this build, and do not add up. etrace advise prints the same.")] } : null;
} });
