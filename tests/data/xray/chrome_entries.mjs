// SPDX-License-Identifier: Apache-2.0
// chrome_entries.mjs ENGINE TRACE: what the trace engine of Chrome's DevTools (the folder ENGINE) makes of a
// file in the trace event format, as JSON: for each thread its name and its calls in order, each with the
// depth and the self time that the engine derives from how they nest.
import fs from 'node:fs';
import {pathToFileURL} from 'node:url';

const [engine, file] = process.argv.slice(2);
globalThis.DOMRect ??= class {};
// Node before 22.1 has no URL.parse
URL.parse ??= (url, base) => URL.canParse(url, base) ? new URL(url, base) : null;
const Trace = await import(pathToFileURL(`${engine}/models/trace/trace.js`));
const model = Trace.TraceModel.Model.createWithAllHandlers();
await model.parse(JSON.parse(fs.readFileSync(file, 'utf8')).traceEvents);
const {Meta, Renderer} = model.parsedTrace().data;

const threads = [];
for (const [pid, process] of Renderer.processes) {
  for (const [tid, thread] of process.threads) {
    const calls = thread.entries.filter(entry => entry.ph === 'X').map(entry => {
      const node = Renderer.entryToNode.get(entry);
      return {name: entry.name, ts: entry.ts, dur: entry.dur, depth: node.depth, self: node.selfTime};
    });
    threads.push({pid, tid, name: thread.name, process: Meta.processNames.get(pid)?.args.name, calls});
  }
}
console.log(JSON.stringify(threads));
