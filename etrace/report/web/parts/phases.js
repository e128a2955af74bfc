// SPDX-License-Identifier: Apache-2.0
// Phases of a build: runs of configure, cmake, meson, and of make and its like. A run of configure has a row for each probe.
import { addPart, remark } from "../parts.js";
import { Table } from "../table.js";
import { el, number, time } from "../show.js";

const CONFIGURE = /^(configure|config\.status|config\.guess)$/, GENERATORS = /^(cmake|meson)$/, MAKERS = /^(g?make|ninja|samu|scons|bmake)$/;
const SOURCE = /(^|\/)conftest\.\w+$/, OBJECT = /\.(o|obj|err|er1|out|exe|dir)$/, RUNS = /(^|\/)conftest(\.exe)?$/;
const SHELLS = /^(\(fork\)|(ba|da|z|k)?sh)$/, COMPILERS = /(cc|\+\+|clang|cpp|gfortran|-\d+)$/;

function kindOf(d, i) {
  const program = d.text(d.program[i]), script = d.argvOf(i).slice(0, 3).map(word => word.slice(word.lastIndexOf("/") + 1));
  if (GENERATORS.test(program) && !script.includes("--build") || script.some(word => CONFIGURE.test(word))) return "configure";
  return MAKERS.test(program) ? "make" : "";
}

// the phase of each command, as the command that began it; -1: none. A configure run below make is a phase of its own.
export function phasesOf(d) {
  if (d.phase) return d.phase;
  const phase = new Int32Array(d.n).fill(-1), kinds = d.phaseKinds = new Map();
  for (let i = 0; i < d.n; i++) { // a parent starts before its children
    const above = d.parent[i] >= 0 ? phase[d.parent[i]] : -1, kind = above >= 0 && kinds.get(above) === "configure" ? "" : kindOf(d, i);
    phase[i] = kind && (above < 0 || kind === "configure") ? i : above;
    if (phase[i] === i) kinds.set(i, kind);
  }
  return d.phase = phase;
}

// what configure started -> probes: each begins with the command that writes the next conftest.c
export function probesOf(d, root) {
  const probes = [];
  for (const child of d.children(root)) {
    const begins = d.writes.of(child).some(f => { const path = d.pathOf(f); return SOURCE.test(path) && !OBJECT.test(path); });
    if (begins || !probes.length) probes.push({ first: child, commands: [], isProbe: begins });
    probes.at(-1).commands.push(child);
  }
  return probes.map(probe => describe(d, probe));
}

// what a command ran: itself, or what the shell that it is ran
function ran(d, command) {
  const found = [], rest = [command];
  while (rest.length) {
    const i = rest.pop();
    if (SHELLS.test(d.text(d.program[i])) && !RUNS.test(d.argvOf(i)[0] ?? "")) rest.push(...[...d.children(i)].reverse());
    else found.push(i);
  }
  return found;
}

function describe(d, { first, commands, isProbe }) {
  const does = new Set();
  let end = 0, result = "", tried = first, n = 0;
  for (const command of commands) end = Math.max(end, d.start[command] + d.elapsed[command]);
  for (const command of commands.flatMap(i => ran(d, i))) {
    const words = d.argvOf(command), isRun = RUNS.test(words[0] ?? "");
    n++;
    if (!isRun && !(COMPILERS.test(d.text(d.program[command])) && words.some(word => SOURCE.test(word) && !OBJECT.test(word)))) continue;
    does.add(isRun ? "run" : words.includes("-E") ? "preprocess" : words.includes("-c") ? "compile" : "link");
    result = d.status[command] === 0 ? "succeeded" : d.status[command] > 0 ? `failed (${d.status[command]})` : "not known";
    tried = command;
  }
  const name = does.size ? [...does].join(", ") : isProbe ? "no compiler" : "before the first probe";
  return { first: tried, name, result, start: d.start[first], ns: end - d.start[first], n };
}

function probeTable(d, probes, details) {
  return new Table("probes", probes.length, [
    { name: "probe", width: 80, number: true, value: k => k, text: k => String(k + 1) },
    { name: "what", width: 220, value: k => probes[k].name, text: k => probes[k].name },
    { name: "result", width: 130, value: k => probes[k].result, text: k => probes[k].result || "-" },
    { name: "time", width: 90, number: true, value: k => probes[k].ns, text: k => time(probes[k].ns) },
    { name: "start", width: 90, number: true, value: k => probes[k].start, text: k => time(probes[k].start) },
    { name: "commands", width: 100, number: true, grow: true, value: k => probes[k].n, text: k => number(probes[k].n) },
  ], k => details.select(probes[k].first));
}

function programTable(d, commands, details) {
  const own = d.ownTimes(), groups = new Map();
  for (const i of commands) {
    const one = groups.get(d.program[i]) ?? { program: d.program[i], n: 0, ns: 0, longest: i };
    groups.set(d.program[i], one);
    one.n++; one.ns += d.cpu ? Math.max(0, d.cpu[i]) : own[i];
    if (own[i] > own[one.longest]) one.longest = i;
  }
  const rows = [...groups.values()].sort((a, b) => b.ns - a.ns);
  return new Table("programs", rows.length, [
    { name: "program", width: 200, value: k => d.text(rows[k].program), text: k => d.text(rows[k].program) },
    { name: "commands", width: 100, number: true, value: k => rows[k].n, text: k => number(rows[k].n) },
    { name: d.cpu ? "CPU" : "own time", width: 100, number: true, value: k => rows[k].ns, text: k => time(rows[k].ns) },
    { name: "longest", width: 260, grow: true, value: k => d.text(d.label[rows[k].longest]), text: k => d.text(d.label[rows[k].longest]) },
  ], k => details.select(rows[k].longest));
}

function fold(page, root, commands) {
  const { data: d, details, handles } = page, probes = d.phaseKinds.get(root) === "configure" ? probesOf(d, root).filter((probe, _, all) => all.length > 1) : [];
  const own = d.ownTimes(), cost = commands.reduce((sum, i) => sum + (d.cpu ? Math.max(0, d.cpu[i]) : own[i]), 0), ran = commands.filter(i => d.isCommand(i)), failed = ran.filter(i => d.status[i] > 0).length;
  const facts = [time(d.elapsed[root]), `${d.cpu ? "CPU" : "own time"} ${time(cost)}`, `${number(ran.length)} commands`, ...(failed ? [`${number(failed)} failed`] : []), ...(probes.length ? [`${number(probes.length)} probes`] : [])];
  const show = el("button", { type: "button", onclick: () => {
    handles.timeline.show(d.start[root], d.start[root] + d.elapsed[root]); document.getElementById("timeline").scrollIntoView();
  } }, "in the timeline");
  const box = el("details", { class: "phase", ontoggle: () => {
    if (box.open && box.childElementCount === 1) box.append(el("p", {}, show, " ", details.link(root)), (probes.length ? probeTable(d, probes, details) : programTable(d, commands, details)).box);
  } }, el("summary", {}, el("b", {}, d.text(d.label[root])), el("span", { class: "soft" }, ` ${facts.join(", ")}`)));
  return { root, probes, commands, box };
}

addPart({ id: "phases", title: "Phases", make: page => {
  const d = page.data, phase = phasesOf(d), members = new Map();
  for (let i = 0; i < d.n; i++) if (phase[i] >= 0) { if (!members.has(phase[i])) members.set(phase[i], []); members.get(phase[i]).push(i); }
  if (!members.size) return null;
  const phases = page.handles.phases = [...members].map(([root, commands]) => fold(page, root, commands));
  return { content: [...phases.map(one => one.box), remark("A run of configure, cmake, meson, make or ninja is a phase; Enter or a click opens its probes or programs. A probe goes from one conftest.c to the next.")] };
} });
