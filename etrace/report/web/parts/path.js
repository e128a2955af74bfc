// SPDX-License-Identifier: Apache-2.0
// The critical path by phase and program (etrace/timing/path_groups.py makes the groups).
import { addPart, remark } from "../parts.js";
import { Table } from "../table.js";
import { number, time } from "../show.js";

addPart({ id: "path", title: "Critical path", make: ({ data, details, handles }) => {
  const [phase, program, ns, n, longest] = ["phase", "program", "ns", "n", "longest"].map(name => data.column(`path.${name}`));
  if (!phase?.length) return null;
  const whole = data.meta.critical.ns || 1, label = i => i < 0 ? "-" : data.text(data.label[i]);
  const table = handles.tables.path = new Table("critical path", phase.length, [
    { name: "phase", width: 210, value: k => label(phase[k]), text: k => label(phase[k]) },
    { name: "program", width: 150, value: k => data.text(program[k]), text: k => data.text(program[k]) },
    { name: "of the path", width: 100, number: true, value: k => ns[k], text: k => time(ns[k]) },
    { name: "share", width: 80, number: true, value: k => ns[k], text: k => `${(100 * ns[k] / whole).toFixed(1)} %` },
    { name: "steps", width: 80, number: true, value: k => n[k], text: k => number(n[k]) },
    { name: "longest step", width: 260, grow: true, value: k => label(longest[k]), text: k => label(longest[k]) },
  ], k => details.select(longest[k]));
  return { content: [table.box, remark("The longest chain of commands that had to wait for each other, by phase and program: only what shortens these shortens a build with enough jobs. etrace critical-path lists its steps.")] };
} });
