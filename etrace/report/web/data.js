// SPDX-License-Identifier: Apache-2.0
// The data block of the page -> columns as typed arrays, texts and lists (etrace/report/pack.py writes it).

const ARRAYS = { Float64Array, Uint32Array, Int32Array, Int16Array, Uint8Array };

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// the data block of the page, or that of a build on the server of the page
export async function loadData() {
  const block = document.getElementById("data");
  if (block) return openData(bytesOf(block.textContent));
  const [bytes, isRunning] = await download(), data = await openData(bytes);
  data.isRunning = isRunning;
  return data;
}

async function download() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token"), build = new URLSearchParams(location.search).get("build");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const headers = { Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  const response = await fetch(`/api/v1/databases/${encodeURIComponent(build)}/report`, { headers });
  if (response.ok) return [await response.arrayBuffer(), response.headers.has("X-Etrace-Running")];
  const { error, hint } = await response.json();
  throw new Error([error, hint].filter(Boolean).join(". "));
}

async function openData(bytes) {
  const buffer = await inflate(bytes);
  const length = new DataView(buffer).getUint32(0, true), start = 4 + length;
  const { meta, columns } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const column = name => {
    const place = columns[name];
    return place ? new ARRAYS[place[0]](buffer, start + place[1], place[2]) : null;
  };
  return new Data(meta, column);
}

class Data {
  constructor(meta, column) {
    Object.assign(this, { meta, column });
    this.textStart = column("texts.start"); this.textBytes = column("texts");
    this.decoder = new TextDecoder(); this.known = new Map();
    for (const name of ["start", "elapsed", "parent", "upid", "index", "status", "program", "cwd", "class", "label", "argv", "cpu", "memory", "target", "role", "critical", "slack", "phase"])
      this[name] = column(`command.${name}`);
    this.argvStart = column("command.argv.start");
    this.n = this.start.length;
    this.filePath = column("file.path"); this.fileSize = column("file.size"); this.fileKind = column("file.kind");
    this.reads = new Uses(column("reads.start"), column("reads")); this.writes = new Uses(column("writes.start"), column("writes"));
    this.end = meta.totals.elapsed_ns;
  }
  text(i) {
    let text = this.known.get(i);
    if (text === undefined) {
      text = this.decoder.decode(this.textBytes.subarray(this.textStart[i], this.textStart[i + 1]));
      this.known.set(i, text);
    }
    return text;
  }
  argvOf(i) { return Array.from(this.argv.subarray(this.argvStart[i], this.argvStart[i + 1]), t => this.text(t)); }
  commandLine(i) { return this.argvOf(i).map(quoted).join(" "); }
  pathOf(file) { return this.relative(this.text(this.filePath[file])); }
  relative(path) {
    const root = this.meta.root + "/";
    return root.length > 1 && path.startsWith(root) ? path.slice(root.length) : path;
  }
  // numbers of all texts that hold a word, as a byte for each; null for no word
  matching(word) {
    if (!word) return null;
    const low = word.toLowerCase(), n = this.textStart.length - 1, found = new Uint8Array(n);
    for (let i = 0; i < n; i++) if (this.text(i).toLowerCase().includes(low)) found[i] = 1;
    return found;
  }
  commandsMatching(word) {
    const texts = this.matching(word), found = new Uint8Array(this.n);
    if (!texts) return null;
    for (let i = 0; i < this.n; i++) {
      let hit = texts[this.label[i]] | texts[this.program[i]];
      for (let j = this.argvStart[i]; !hit && j < this.argvStart[i + 1]; j++) hit = texts[this.argv[j]];
      found[i] = hit;
    }
    return found;
  }
  isCommand(i) { return this.program[i] !== this.meta.fork; } // others are processes that ran no program
  childrenOf() { // lists of children: start and numbers, in order of time
    if (this.childStart) return;
    const start = new Uint32Array(this.n + 2);
    for (let i = 0; i < this.n; i++) start[this.parent[i] + 2]++;
    for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
    const at = start.slice(), child = new Uint32Array(this.n);
    for (let i = 0; i < this.n; i++) child[at[this.parent[i] + 1]++] = i;
    this.childStart = start; this.child = child; // children of i: child[start[i + 1] .. start[i + 2]]; -1: roots
  }
  // 1 for a command that started no other
  leaves() {
    if (this.leaf) return this.leaf;
    this.leaf = new Uint8Array(this.n).fill(1);
    for (const p of this.parent) if (p >= 0) this.leaf[p] = 0;
    return this.leaf;
  }
  // own time: wall time of a command while none of its children ran
  ownTimes() {
    if (this.own) return this.own;
    this.own = new Float64Array(this.n);
    for (let i = 0; i < this.n; i++) {
      const end = this.start[i] + this.elapsed[i];
      let covered = 0, until = this.start[i];
      for (const child of this.children(i)) { // in order of start
        const a = Math.max(until, this.start[child]), b = Math.min(end, this.start[child] + this.elapsed[child]);
        if (b > a) { covered += b - a; until = b; }
      }
      this.own[i] = Math.max(0, this.elapsed[i] - covered);
    }
    return this.own;
  }
  cost(i) { return this.cpu && this.cpu[i] >= 0 ? this.cpu[i] : this.ownTimes()[i]; } // CPU time, or own time
  children(i) { this.childrenOf(); return this.child.subarray(this.childStart[i + 1], this.childStart[i + 2]); }
}

// lists of sorted numbers, as differences in LEB128
class Uses {
  constructor(start, bytes) { this.start = start; this.bytes = bytes; }
  of(command) {
    const found = [], bytes = this.bytes;
    let last = 0, value = 0, shift = 0;
    for (let i = this.start[command]; i < this.start[command + 1]; i++) {
      value += (bytes[i] & 0x7f) * 2 ** shift;
      if (bytes[i] & 0x80) { shift += 7; continue; }
      found.push(last += value); value = shift = 0;
    }
    return found;
  }
  commandsOf(nFiles) { // the other way round, made once: start and commands of each file
    if (this.back) return this.back;
    const count = new Uint32Array(nFiles + 1), n = this.start.length - 1, lists = [];
    let total = 0;
    for (let c = 0; c < n; c++) { const own = this.of(c); lists.push(own); total += own.length; for (const f of own) count[f + 1]++; }
    for (let f = 0; f < nFiles; f++) count[f + 1] += count[f];
    const at = count.slice(), commands = new Uint32Array(total);
    for (let c = 0; c < n; c++) for (const f of lists[c]) commands[at[f]++] = c;
    return this.back = { start: count, commands };
  }
  commands(file, nFiles) {
    const { start, commands } = this.commandsOf(nFiles);
    return commands.subarray(start[file], start[file + 1]);
  }
}

export function quoted(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'"; }
