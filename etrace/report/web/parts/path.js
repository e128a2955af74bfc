// SPDX-License-Identifier: Apache-2.0
// The critical path by phase and program: a path of a thousand steps in a few rows.
import { addPart, remark } from "../parts.js";
import { Table } from "../table.js";
import { number, time } from "../show.js";
import { phasesOf } from "./phases.js";

// rows of {phase, program, n, ns, longest}, the one with most time first
export function pathGroups(d) {
  const command = d.column("path.command"), work = d.column("path.work"), phase = phasesOf(d), groups = new Map();
  for (let k = 0; k < command.length; k++) {
    const i = command[k];
    if (i < 0) continue;
    const key = `${phase[i]} ${d.program[i]}`, one = groups.get(key) ?? { phase: phase[i], program: d.program[i], n: 0, ns: 0, longest: k };
    groups.set(key, one);
    one.n++; one.ns += work[k];
    if (work[k] > work[one.longest]) one.longest = k;
  }
  return [...groups.values()].sort((a, b) => b.ns - a.ns).map(one => ({ ...one, longest: command[one.longest] }));
}

addPart({ id: "path", title: "Critical path", make: ({ data, details, handles }) => {
  if (!data.column("path.command")?.length) return null;
  const groups = handles.pathGroups = pathGroups(data), whole = data.meta.critical.ns || 1;
  const phaseText = g => g.phase < 0 ? "-" : data.text(data.label[g.phase]);
  const table = handles.tables.path = new Table("critical path", groups.length, [
    { name: "phase", width: 210, value: k => phaseText(groups[k]), text: k => phaseText(groups[k]) },
    { name: "program", width: 150, value: k => data.text(groups[k].program), text: k => data.text(groups[k].program) },
    { name: "of the path", width: 100, number: true, value: k => groups[k].ns, text: k => time(groups[k].ns) },
    { name: "share", width: 80, number: true, value: k => groups[k].ns, text: k => `${(100 * groups[k].ns / whole).toFixed(1)} %` },
    { name: "steps", width: 80, number: true, value: k => groups[k].n, text: k => number(groups[k].n) },
    { name: "longest step", width: 260, grow: true, value: k => data.text(data.label[groups[k].longest]), text: k => data.text(data.label[groups[k].longest]) },
  ], k => details.select(groups[k].longest));
  return { content: [table.box, remark("The longest chain of commands that had to wait for each other, by phase and program: only what shortens these shortens a build with enough jobs. etrace critical-path lists its steps.")] };
} });
