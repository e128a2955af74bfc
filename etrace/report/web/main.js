// SPDX-License-Identifier: Apache-2.0
// Puts the page together once the data is there.
import { loadData } from "./data.js";
import { Details } from "./details.js";
import { Flame } from "./flame.js";
import { Neighbours } from "./neighbours.js";
import { Timeline } from "./timeline.js";
import { choice, commandTable, failureList, figures, headerTable, moduleTable, searchBox, section } from "./sections.js";
import { el, number } from "./show.js";

function timelineSection(data, details) {
  const timeline = new Timeline(data, details), matched = el("span", { class: "soft", "aria-live": "polite" });
  const search = searchBox("search commands", word => {
    const found = timeline.search(word);
    matched.textContent = found ? `${number(found.reduce((a, b) => a + b, 0))} match` : "";
  });
  const names = Object.keys(timeline.choices()).map(name => [name, name]);
  const button = (label, text, does) => el("button", { type: "button", "aria-label": label, title: label, onclick: does }, text);
  const controls = [search, matched, choice("colour by", names, name => timeline.colourBy(name)),
    button("zoom in", "+", () => timeline.zoom(.5)), button("zoom out", "\u2212", () => timeline.zoom(2)), button("show all", "all", () => timeline.show(0, data.end))];
  if (data.critical) {
    const box = el("input", { type: "checkbox", onchange: () => { timeline.criticalOnly = box.checked; timeline.surface.ask(); } });
    controls.push(el("label", {}, box, " critical path only"));
  }
  const help = el("p", { class: "remark" }, "Drag to zoom, double-click to see all, Ctrl and the wheel to zoom. Keys: arrows, + \u2212 0, n and p for the next command, Enter.");
  return [timeline, section("timeline", "Timeline", controls, timeline.surface.box, timeline.tip, timeline.legend, help)];
}

function flameSection(data, details) {
  const flame = new Flame(data, details), weights = [["wall", "wall time"], ...(data.cpu ? [["cpu", "CPU time"]] : [])];
  const controls = [searchBox("search programs", word => flame.search(word)), choice("width", weights, name => flame.weigh(name)),
    el("button", { type: "button", onclick: () => flame.zoom(flame.root) }, "all")];
  const help = el("p", { class: "remark" }, data.cpu ? "Wall time counts a command while none of its children run." :
    "Width: wall time of a command while none of its children run. The trace holds no CPU times.");
  return [flame, section("flame", "Process tree", controls, flame.surface.box, flame.tip, help)];
}

function neighbourSection(data, details) {
  const neighbours = new Neighbours(data, details);
  const list = el("ul", { class: "links", "aria-label": "files found" });
  const search = searchBox("part of a path", word => {
    const found = word ? neighbours.find(word, 12) : [];
    list.replaceChildren(...found.map(f => el("li", {}, el("button", { type: "button", onclick: () => { list.replaceChildren(); neighbours.show(f); } }, data.pathOf(f)))));
  });
  const controls = [search, choice("steps", [["1", "1"], ["2", "2"], ["3", "3"]], n => { neighbours.steps = Number(n); neighbours.draw(); })];
  return [neighbours, section("neighbours", "A file and what surrounds it", controls, list, neighbours.box)];
}

function remarks(data) {
  const found = [];
  if (!data.meta.is_processed) found.push("The database has no modules and compilations yet: run cas pp, then etrace report again.");
  if (data.meta.no_critical_path) found.push(`The critical path is not known: ${data.meta.no_critical_path}`);
  if (data.meta.cut_arguments) found.push(`Arguments of ${number(data.meta.cut_arguments)} commands are cut: there are too many for one page.`);
  if (data.meta.dropped_files) found.push(`Reads of the ${number(data.meta.dropped_files)} most read files are left out of the neighbourhood: there are too many for one page.`);
  return found.map(text => el("p", { class: "remark" }, text));
}

function build(data) {
  const app = document.getElementById("app"), parts = [];
  let neighbours = null;
  const openFile = file => {
    neighbours.show(file);
    document.getElementById("neighbours").scrollIntoView();
  };
  const details = new Details(data, openFile);
  const [timeline, timelinePart] = timelineSection(data, details), [flame, flamePart] = flameSection(data, details);
  const [found, neighbourPart] = neighbourSection(data, details);
  neighbours = found;
  const commands = commandTable(data, details);
  if (data.meta.failures.length) parts.push(section("failures", "Why the build failed", [], ...failureList(data, details)));
  parts.push(timelinePart, flamePart, section("commands", "Commands", [commands.count, searchBox("filter commands", word => commands.filter(data.commandsMatching(word)))], commands.box));
  const tables = { commands };
  if (data.meta.modules.length) {
    tables.modules = moduleTable(data, openFile);
    parts.push(section("modules", "Linked modules", [tables.modules.count], tables.modules.box));
  }
  if (data.column("header.path")?.length) {
    tables.headers = headerTable(data, openFile);
    parts.push(section("headers", "Headers by cost", [tables.headers.count], tables.headers.box,
      el("p", { class: "remark" }, "Time is estimated from all compilations by least squares: time against bytes of sources and of headers. An error as large as the time means that it is not known.")));
  }
  parts.push(neighbourPart);
  const first = data.meta.modules.find(module => module.file >= 0);
  if (first) new IntersectionObserver((seen, observer) => {
    if (!seen.some(entry => entry.isIntersecting)) return;
    observer.disconnect();
    if (neighbours.file < 0) neighbours.show(first.file);
  }).observe(neighbourPart);
  const opening = parts.findIndex(part => part.id === data.meta.first);
  if (opening > 0) parts.unshift(...parts.splice(opening, 1));
  const links = parts.map(part => el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  app.append(el("h1", {}, data.meta.title), figures(data), ...remarks(data), el("nav", { "aria-label": "parts of the page" }, ...links), el("main", {}, ...parts),
    el("p", { class: "remark" }, `Made by etrace ${data.meta.version}. The page holds command lines and names of files of the build, and the environment of commands that failed it.`), details.box);
  document.title = `${data.meta.title} - etrace report`;
  document.getElementById("plain").hidden = true; app.hidden = false;
  globalThis.etraceReport = { data, timeline, flame, neighbours, details, tables, ready: performance.now() };
}

try {
  build(await loadData());
} catch (error) {
  document.getElementById("plain").prepend(el("p", { class: "remark bad" }, `The page shows no more than this, because its data could not be opened: ${error}`));
}
