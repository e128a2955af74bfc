// SPDX-License-Identifier: Apache-2.0
// Trends, slowest steps, the products of a file and the builds of a fleet. All text of a build goes
// into the page by textContent: it is a stranger's.

import { at, begin, element, fill, getJson, table } from "./common.js";

const API = "/api/v1/fleet";
const ALL = "all projects";
const OF = { size: "module", dependencies: "module", step: "step" };
const ROWS = 200;

let questions = {};
const latest = {};

const ask = (path, values = {}) => {
  const words = new URLSearchParams(values);
  if (at("project").value !== ALL) words.append("project", at("project").value);
  for (const name of ["since", "until"]) if (at(name).value) words.append(name, at(name).value);
  return getJson(`${API}/${path}?${words}`);
};

const query = (name, values) => ask(`queries/${name}`, values);

const bodyOf = (id) => at(id).querySelector(".body");

// Fills a section; an answer that came after a later question is dropped.
const show = async (id, make) => {
  const own = Symbol(id);
  latest[id] = own;
  bodyOf(id).replaceChildren(element("p", "asking ...", { className: "hint" }));
  let nodes;
  try {
    nodes = await make();
  } catch (error) {
    nodes = [element("p", error.message, { className: "wrong" })];
  }
  if (latest[id] === own) bodyOf(id).replaceChildren(...nodes);
};

const labels = (value) =>
  Object.entries(value).map(([name, own]) => `${name}=${own}`).join(" ");

const rows = ({ entries, is_cut: isCut }, links, none = "none") => {
  if (!entries.length) return [element("p", none, { className: "hint" })];
  const shown = entries
    .slice(0, ROWS)
    .map((entry) => (entry.labels ? { ...entry, labels: labels(entry.labels) } : entry));
  const more = isCut ? "more than " : "";
  const rest = `${ROWS} of ${more}${entries.length}; choose fewer by project or date`;
  const note = entries.length > ROWS ? [element("p", rest, { className: "hint" })] : [];
  return [table(shown, links), ...note];
};

// ---- trends

const figured = () => {
  const of = OF[at("figure").value];
  at("of-label").hidden = !of;
  at("of").placeholder = of ?? "";
};

const rounded = (value, unit) => `${Number(value.toPrecision(4))} ${unit}`.trim();

const showTrend = () =>
  show("trends", async () => {
    const figure = at("figure").value;
    const of = OF[figure];
    if (of && !at("of").value) return [element("p", `Which ${of}?`, { className: "hint" })];
    const found = await ask("trends", of ? { figure, of: at("of").value } : { figure });
    const picture = element("img", "", {
      src: `data:image/svg+xml,${encodeURIComponent(found.svg)}`,
      alt: `${found.title}, ${found.points.length} commits`,
    });
    const changes = found.changes.map(({ commit, before, after, noise }) => ({
      "changed by": commit,
      before: rounded(before, found.unit),
      after: rounded(after, found.unit),
      noise: rounded(noise, found.unit),
    }));
    const none = element("p", "No change beyond the noise.", { className: "hint" });
    return [picture, changes.length ? table(changes) : none];
  });

const choose = (figure, of) => {
  at("figure").value = figure;
  at("of").value = of;
  figured();
  at("trends").scrollIntoView();
};

const trendOf = (figure, of) => {
  choose(figure, of);
  showTrend();
};

// ---- the other sections

const showSteps = () =>
  show("steps", async () => {
    const step = (value, { project }) => {
      at("project").value = project;
      choose("step", value);
      refresh();
    };
    return rows(await query("slowest-steps"), { step });
  });

const showFile = () =>
  show("file", async () => {
    const file = at("path").value;
    if (!file) return [];
    const links = { last_build: showBuild, module: (value) => trendOf("size", value) };
    const found = await query("products-with-file", { file });
    if (found.entries.length) return rows(found, links);
    const like = await query("files-like", { pattern: `%${file}%` });
    const path = (value) => {
      at("path").value = value;
      showFile();
    };
    const none = `No module was made of ${file}. `;
    if (!like.entries.length) return [element("p", `${none}No name is like it.`)];
    return [element("p", `${none}Names like it:`), ...rows(like, { path })];
  });

const showBuilds = () =>
  show("builds", async () => rows(await query("builds"), { build: showBuild }));

const REPORT = [
  ["build-failures", "Commands that failed", {}],
  ["build-changes", "Files that differ from the build before", {}],
  ["build-steps", "Slowest commands", { step: (value) => trendOf("step", value) }],
  ["build-modules", "Linked modules", { path: (value) => trendOf("size", value) }],
];

const showBuild = (build) => {
  at("build").hidden = false;
  at("build-name").textContent = build;
  at("build").scrollIntoView();
  return show("build", async () => {
    const parts = await Promise.all(
      REPORT.map(async ([name, title, links]) => [
        element("h3", title),
        ...rows(await query(name, { build }), links),
      ]),
    );
    const { databases } = await getJson("/api/v1/databases");
    const href = `report?build=${encodeURIComponent(build)}`;
    const isServed = databases.some(({ name }) => name === build);
    const link = isServed ? [element("a", "Timeline, critical path and the rest", { href })] : [];
    return [...link, ...parts.flat()];
  });
};

// ---- any question

const showParameters = () => {
  const { parameters } = questions[at("query").value];
  at("parameters").replaceChildren(
    ...parameters.map(({ name, meaning }) => {
      const label = element("label", `${name} `);
      label.append(element("input", "", { type: "text", name, placeholder: meaning, size: 50 }));
      return label;
    }),
  );
};

const showMore = () =>
  show("more", async () => {
    const inputs = [...at("parameters").querySelectorAll("input")];
    const values = Object.fromEntries(inputs.map(({ name, value }) => [name, value]));
    return rows(await query(at("query").value, values), { build: showBuild });
  });

// ---- start

const refresh = () => {
  for (const each of [showTrend, showSteps, showFile, showBuilds]) each();
};

const submits = (id, act) =>
  at(id).querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });

const start = async () => {
  const fleet = await getJson(API);
  const count = fleet.projects.reduce((sum, { builds }) => sum + builds, 0);
  at("name").textContent = fleet.name;
  at("state").textContent = `builds: ${count}, projects: ${fleet.projects.length}`;
  fill(at("project"), [...fleet.projects.map(({ project }) => project), ALL]);
  fill(at("figure"), fleet.figures);
  questions = Object.fromEntries(fleet.queries.map((each) => [each.name, each]));
  fill(at("query"), Object.keys(questions));
  for (const option of at("query").options) option.title = questions[option.value].summary;
  for (const id of ["project", "since", "until"]) at(id).addEventListener("change", refresh);
  at("figure").addEventListener("change", () => {
    figured();
    showTrend();
  });
  at("query").addEventListener("change", showParameters);
  submits("trends", showTrend);
  submits("file", showFile);
  submits("more", showMore);
  figured();
  showParameters();
  refresh();
};

begin(start);
