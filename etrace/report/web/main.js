// SPDX-License-Identifier: Apache-2.0
// Puts the page together once the data is there.
import { loadData } from "./data.js";
import { Details } from "./details.js";
import { makeParts, remark } from "./parts.js";
import { el, forgetSurfaces, number, time } from "./show.js";

const SHOWN = { time, number, ratio: value => value.toFixed(1) };

function figures(d) { // words, values and meanings are given (etrace/report/head.py)
  const item = ({ word, kind, value, meaning }) => el("li", {}, el("b", {}, SHOWN[kind](value)), el("span", {}, word), el("small", {}, meaning));
  return el("div", {}, el("ul", { class: "figures" }, ...d.meta.figures.map(item)),
    ...(d.meta.critical?.doubts ?? []).map(([ns, where]) => el("p", { class: "soft" }, `Of the critical path ${time(ns)} is ${where}.`)));
}

function remarks(data) {
  const found = [];
  if (!data.meta.is_processed) found.push("The database has no modules and compilations yet: run cas pp, then etrace report again.");
  found.push(...(data.meta.notes ?? []));
  if (data.meta.no_critical_path) found.push(`The critical path is not known: ${data.meta.no_critical_path}`);
  if (data.meta.cut_arguments) found.push(`Arguments of ${number(data.meta.cut_arguments)} commands are cut: there are too many for one page.`);
  if (data.meta.dropped_files) found.push(`Reads of the ${number(data.meta.dropped_files)} most read files are left out of the neighbourhood: there are too many for one page.`);
  return found.map(remark);
}

function live(data) {
  return el("p", { id: "live", role: "status", class: "soft" }, data.isRunning ? "The build runs; the page follows it." : "");
}

function build(data) {
  const app = document.getElementById("app"), handles = { tables: {} };
  const openFile = file => {
    handles.neighbours.show(file);
    document.getElementById("neighbours").scrollIntoView();
  };
  const details = new Details(data, openFile), parts = makeParts({ data, details, openFile, handles });
  const opening = parts.findIndex(part => part.id === data.meta.first);
  if (opening > 0) parts.unshift(...parts.splice(opening, 1));
  const links = parts.map(part => el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  app.append(el("h1", {}, data.meta.title), live(data), figures(data), ...remarks(data), el("nav", { "aria-label": "parts of the page" }, ...links), el("main", {}, ...parts),
    remark(`Made by etrace ${data.meta.version}. The page holds command lines and names of files of the build, and the environment of commands that failed it.`), details.box);
  document.title = `${data.meta.title} - etrace report`;
  document.getElementById("plain").hidden = true; app.hidden = false;
  globalThis.etraceReport = { data, details, ...handles, ready: performance.now() };
}

// ---- a build that runs: its page is made again, and what was set stays set ----

const PAUSE_MS = 1500;

function state() {
  const { data, details, timeline } = globalThis.etraceReport, chosen = details.chosen;
  return { scroll: scrollY, focus: document.activeElement?.getAttribute("aria-label"), view: timeline.to < data.end ? [timeline.from, timeline.to] : null,
    controls: [...document.querySelectorAll("section .head select, section .head input")].map(box => [box.type === "checkbox" ? box.checked : box.value, box]),
    opened: [...document.querySelectorAll("details.phase[open] b")].map(each => each.textContent),
    chosen: chosen < 0 ? null : `${data.upid[chosen]}:${data.index[chosen]}` };
}

function restore(old) {
  const { data, details, timeline } = globalThis.etraceReport, boxes = [...document.querySelectorAll("section .head select, section .head input")];
  for (const [value, was] of old.controls) {
    const box = boxes.find(each => each.type === was.type && each.closest("section").id === was.dataset.section && each.dataset.number === was.dataset.number);
    if (!box || (box.type === "checkbox" ? box.checked : box.value) === value) continue;
    if (box.type === "checkbox") box.checked = value; else box.value = value;
    box.dispatchEvent(new Event(box.type === "search" ? "input" : "change"));
  }
  if (old.view) timeline.show(...old.view);
  for (const each of document.querySelectorAll("details.phase")) if (old.opened.includes(each.querySelector("b").textContent)) each.open = true;
  if (old.chosen) for (let i = 0; i < data.n; i++) if (`${data.upid[i]}:${data.index[i]}` === old.chosen) details.select(i);
  if (old.focus) document.querySelector(`[aria-label="${CSS.escape(old.focus)}"]`)?.focus({ preventScroll: true });
  scrollTo(0, old.scroll);
}

function nameControls() { // so that each control is found again on the next page
  for (const part of document.querySelectorAll("section"))
    part.querySelectorAll(".head select, .head input").forEach((box, k) => { box.dataset.section = part.id; box.dataset.number = k; });
}

async function follow() {
  for (let took = 0;;) { // a large build is asked for less often
    await new Promise(done => setTimeout(done, Math.max(PAUSE_MS, 2 * took)));
    if (document.hidden) continue;
    const began = performance.now();
    let data;
    try { data = await loadData(); took = performance.now() - began; } catch (error) {
      document.querySelector("#live").textContent = `The server does not answer any more: ${error}`;
      return;
    }
    const old = state();
    forgetSurfaces();
    document.getElementById("app").replaceChildren();
    build(data);
    nameControls();
    restore(old);
    if (!data.isRunning) return;
  }
}

// a build may have run no command yet
async function first() {
  for (;;) {
    try { return await loadData(); } catch (error) {
      if (!String(error).includes("run no command yet")) throw error;
      await new Promise(done => setTimeout(done, PAUSE_MS));
    }
  }
}

try {
  const data = await first();
  build(data);
  nameControls();
  if (data.isRunning) follow();
} catch (error) {
  document.getElementById("plain").prepend(el("p", { class: "remark bad" }, `The page shows no more than this, because its data could not be opened: ${error}`));
}
