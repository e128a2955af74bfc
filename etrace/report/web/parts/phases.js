// SPDX-License-Identifier: Apache-2.0
// Phases of a build (etrace/query/phases.py finds them). A run of configure has a row for each probe.
import { addPart, remark } from "../parts.js";
import { Table } from "../table.js";
import { el, number, time } from "../show.js";

// the columns of probes; rows are those of one configure run
function probeTable(d, rows, details) {
  const [isProbe, shown, what, result, start, ns, n] = ["isProbe", "shown", "what", "result", "start", "ns", "n"].map(name => d.column(`probe.${name}`));
  const text = (column, k) => d.text(column[rows[k]]), before = isProbe[rows[0]] ? 0 : 1; // the row before the first probe
  return new Table("probes", rows.length, [
    { name: "probe", width: 80, number: true, value: k => k, text: k => isProbe[rows[k]] ? number(k + 1 - before) : "-" },
    { name: "what", width: 220, value: k => text(what, k), text: k => text(what, k) },
    { name: "result", width: 130, value: k => text(result, k), text: k => text(result, k) || "-" },
    { name: "time", width: 90, number: true, value: k => ns[rows[k]], text: k => time(ns[rows[k]]) },
    { name: "start", width: 90, number: true, value: k => start[rows[k]], text: k => time(start[rows[k]]) },
    { name: "commands", width: 100, number: true, grow: true, value: k => n[rows[k]], text: k => number(n[rows[k]]) },
  ], k => details.select(shown[rows[k]]));
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
  const { data: d, details, handles } = page, phase = d.column("probe.phase"), isProbe = d.column("probe.isProbe");
  const probes = [...phase.keys()].filter(k => phase[k] === root), nProbes = probes.filter(k => isProbe[k]).length;
  const own = d.ownTimes(), cost = commands.reduce((sum, i) => sum + (d.cpu ? Math.max(0, d.cpu[i]) : own[i]), 0), ran = commands.filter(i => d.isCommand(i)), failed = ran.filter(i => d.status[i] > 0).length;
  const facts = [time(d.elapsed[root]), `${d.cpu ? "CPU" : "own time"} ${time(cost)}`, `${number(ran.length)} commands`, ...(failed ? [`${number(failed)} failed`] : []), ...(probes.length ? [`${number(nProbes)} probes`] : [])];
  const show = el("button", { type: "button", onclick: () => {
    handles.timeline.show(d.start[root], d.start[root] + d.elapsed[root]); document.getElementById("timeline").scrollIntoView();
  } }, "in the timeline");
  const box = el("details", { class: "phase", ontoggle: () => {
    if (box.open && box.childElementCount === 1) box.append(el("p", {}, show, " ", details.link(root)), (probes.length ? probeTable(d, probes, details) : programTable(d, commands, details)).box);
  } }, el("summary", {}, el("b", {}, d.text(d.label[root])), el("span", { class: "soft" }, ` ${facts.join(", ")}`)));
  return { root, probes, commands, box };
}

addPart({ id: "phases", title: "Phases", make: page => {
  const d = page.data, members = new Map();
  for (let i = 0; i < d.n; i++) if (d.phase[i] >= 0) { if (!members.has(d.phase[i])) members.set(d.phase[i], []); members.get(d.phase[i]).push(i); }
  if (!members.size) return null;
  const phases = page.handles.phases = [...members].map(([root, commands]) => fold(page, root, commands));
  return { content: [...phases.map(one => one.box), remark("A run of configure, cmake, meson, make or ninja is a phase; Enter or a click opens its probes or programs. A probe goes from one conftest.c to the next.")] };
} });
