// The page of a job: docs/report.md says what it shows. It is given data, and has no opinion of its own. All
// text goes through `clean` and textContent: names, messages and tracebacks are whatever people's files are
// called and their programs print. Elements are made once and then changed, so that focus and selection stay.
"use strict";

(() => {

// --- text

// What would not be seen, or would change the order of what is around it, is spelt.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const spell = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
const clean = (text) => String(text).replace(UNSEEN, spell);

const digits = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const count = (n) => digits.format(n).replace(/,/g, "\u202f");
const few = (n) => (n >= 100 ? Math.round(n) : Number(n.toPrecision(3)));
const share = (part, whole) => (whole > 0 ? part / whole : 0);
const percent = (x) => (x > 0 && x < 0.01 ? "< 1 %" : Math.round(x * 100) + " %");

function duration(s) {
  if (s === 0) return "0 s";
  if (s < 1e-3) return few(s * 1e6) + " µs";
  if (s < 1) return few(s * 1e3) + " ms";
  if (s < 100) return few(s) + " s";
  const whole = Math.round(s);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  return `${Math.floor(whole / 3600)}h${two(Math.floor(whole / 60) % 60)}m`;
}

function bytesText(n) {
  for (const unit of ["bytes", "kB", "MB", "GB"]) {
    if (n < 1000 || unit === "GB") return `${few(n)} ${unit}`;
    n /= 1000;
  }
}

// --- elements

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  for (const child of children) {
    node.append(typeof child === "object" ? child : clean(child));
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const shape = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function setText(node, text) {
  const wanted = clean(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}
function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// As many children as there are values: those that are there are changed, the others made or removed.
function each(parent, values, make, change) {
  while (parent.children.length > values.length) parent.lastElementChild.remove();
  values.forEach((value, i) => {
    if (i === parent.children.length) parent.append(make(value, i));
    change(parent.children[i], value, i);
  });
}

let ids = 0;
function section(title, ...children) {
  const id = "s" + ++ids;
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
}

// Columns are [heading, isNumber]. A cell is text.
function table(caption, columns, rows) {
  const body = el("tbody");
  const head = columns.map(([name, right]) => el("th", right ? { scope: "col", class: "n" } : { scope: "col" }, name));
  const node = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...head)), body));
  const update = (now) => each(body, now, () => el("tr"), (row, cells) =>
    each(row, cells, (_, i) => el("td", columns[i][1] ? { class: "n" } : {}), (cell, text) => setText(cell, text)));
  update(rows || []);
  return { node, update };
}

const more = (title, ...children) => el("details", {}, el("summary", {}, title), ...children);

// --- the top

function top() {
  const name = el("h1", {}, "");
  const state = el("p", { class: "state", role: "status" });
  const cause = el("p", { class: "cause" });
  const parts = {};
  const bar = el("div", { class: "bar", role: "img" });
  for (const kind of ["succeeded", "failed", "running"]) bar.append((parts[kind] = el("div", { class: kind })));
  const legend = el("ul", { class: "legend" });
  const facts = el("dl", { class: "facts" });
  const node = el("header", {}, name, state, cause, bar, legend, facts);

  return { node, update(data) {
    const m = data.miniBatches;
    document.title = `${data.state}: ${clean(data.name || "job")}`;
    setText(name, data.name || "job");
    const marks = { Succeeded: "✓", Failed: "✗" };
    setText(state, `${marks[data.state] || "…"} ${data.state}` + (data.verdict ? ` (${data.verdict.reason})` : ""));
    setAttribute(state, "data-state", data.state);
    setText(cause, data.cause || (data.verdict ? data.verdict.message : ""));
    const of = `${m.listed ? "" : "at least "}${count(m.planned)}`;
    const numbers = [
      ["succeeded", m.succeeded, "succeeded"], ["failed", m.failed, "failed"],
      ["running", m.running || 0, "running"],
      ["pending", m.planned - m.succeeded - m.failed - (m.running || 0), data.live ? "pending" : "not run"],
    ];
    for (const [kind, n] of numbers) {
      if (parts[kind]) parts[kind].style.flexBasis = 100 * share(n, m.planned) + "%";
    }
    const words = numbers.filter(([kind, n]) => n > 0 || kind === "succeeded");
    setAttribute(bar, "aria-label", `Of ${of} mini-batches: ` + words.map(([, n, word]) => `${count(n)} ${word}`).join(", "));
    each(legend, words, () => el("li"), (item, [kind, n, word]) => {
      setAttribute(item, "class", kind);
      setText(item, `${count(n)} ${word}`);
    });
    const lines = [
      ...(data.trial ? [["A trial, of", data.trial]] : []),
      ["Mini-batches", of],
      ["Items", `${count(data.items.succeeded)} succeeded, ${count(data.items.failed)} failed` +
        (data.items.withoutElement ? `, ${count(data.items.withoutElement)} without an element` : "")],
      ["Rows", count(data.rows)],
      ["Time", duration(data.seconds)],
      ["Throughput", count(few(share(m.succeeded + m.failed, data.seconds))) + " mini-batches/s"],
    ];
    if (data.remaining !== undefined) lines.push(["Left", data.remaining === null ? "not known yet" : "about " + duration(data.remaining)]);
    if (data.slowestRunning) {
      const s = data.slowestRunning;
      lines.push(["Slowest running", `${duration(s.seconds)}: mini-batch ${s.miniBatch}${s.item ? ` (${s.item})` : ""}, node ${s.node}`]);
    }
    if (data.init) lines.push([data.live ? "Waits for init()" : "When it ended", data.init]);
    if (data.storeWaits) lines.push(["Waits for stores", data.storeWaits]);
    if (data.begunAt) lines.push(["Began", data.begunAt]);
    if (data.output) lines.push(["Output", `${data.output.path} (${bytesText(data.output.bytes)})`]);
    if (data.logFolder) lines.push(["Logs", data.logFolder]);
    each(facts, lines, () => el("div", {}, el("dt"), el("dd")), (pair, [term, value]) => {
      setText(pair.children[0], term);
      setText(pair.children[1], value);
    });
  } };
}

// --- advice, errors

function advice() {
  const list = el("ul", { class: "advice" });
  const node = section("Advice", list);
  return { node, update(data) {
    node.hidden = data.advice.length === 0;
    each(list, data.advice, () => el("li", {}, el("strong"), el("span")), (item, one) => {
      setText(item.children[0], one.found);
      setText(item.children[1], one.change ? ": " + one.change : "");
    });
  } };
}

// `showLog`: opens a log; none where there is nothing to be asked.
function errors(showLog) {
  const told = el("p");
  const list = el("div", { class: "errors" });
  const node = section("Errors", told, list);
  const make = () => {
    const summary = el("summary", {}, el("span", { class: "times" }), el("span", { class: "message" }));
    const open = el("button", { type: "button", hidden: "" }, "Show its log");
    if (showLog) open.addEventListener("click", () => showLog(open.dataset.log));
    return el("details", {}, summary, el("p", { class: "where" }), el("pre", { tabindex: "0", "aria-label": "Traceback" }), open);
  };
  return { node, update(data) {
    const all = data.errors;
    setText(told, all.attempts === 0 ? "No attempt of a mini-batch has failed." :
      (all.attempts === 1 ? "1 attempt has failed. " : `${count(all.attempts)} attempts have failed. `) + (all.more ? `The ${all.list.length} most frequent errors are shown; job_error.txt and failures.jsonl have more.` :
        "All items that failed are in failures.jsonl."));
    each(list, all.list, make, (item, e) => {
      setText(item.children[0].children[0], count(e.count) + " × ");
      setText(item.children[0].children[1], `${e.type || e.kind}: ${e.message}`);
      const log = e.log ? `, log ${e.log}` : "";
      setText(item.children[1], (e.location ? `At ${e.location}. ` : "") +
        `First in mini-batch ${e.miniBatch}${e.item ? ` (${e.item})` : ""}, node ${e.node}, ${e.process}${log}`);
      setText(item.children[2], e.traceback);
      item.children[2].hidden = !e.traceback;
      item.children[3].hidden = !showLog || !e.log;
      setAttribute(item.children[3], "data-log", clean(e.log));
    });
  } };
}

// --- over time

const WIDE = 600, HIGH = 120;

function chart(title, names, unit) {
  const lines = names.map((_, i) => shape("path", { class: "line" + i }));
  const cursor = shape("line", { class: "cursor", y1: 0, y2: HIGH });
  const plot = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines, cursor);
  const most = el("span", { class: "most" });
  const end = el("span", { class: "end" });
  const readout = el("output", {});
  const picture = el("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": title, "aria-valuemin": "0" }, plot, most, end);
  const key = el("ul", { class: "legend" }, ...names.map((name, i) => el("li", { class: "key" + i }, name)));
  const rows = table(title, [["Time", true], ...names.map((name) => [name, true])]);
  const node = el("figure", {}, el("figcaption", {}, title), key, picture, readout, more("As a table", rows.node));
  let step = 1, values = names.map(() => []), at = -1;

  function show(index) {
    const length = values[0].length;
    at = Math.max(0, Math.min(length - 1, index));
    const x = (at + 0.5) / length * WIDE;
    setAttribute(cursor, "x1", x);
    setAttribute(cursor, "x2", x);
    const text = `after ${duration(at * step)}: ` + names.map((name, i) => `${name} ${unit(values[i][at])}`).join(", ");
    setText(readout, text);
    setAttribute(picture, "aria-valuenow", at);
    setAttribute(picture, "aria-valuetext", text);
  }
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    show(Math.floor((event.clientX - box.left) / box.width * values[0].length));
  });
  picture.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: values[0].length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key]);
  });

  return { node, update(nowStep, nowValues) {
    step = nowStep;
    values = nowValues;
    const length = values[0].length;
    node.hidden = length === 0;
    if (length === 0) return;
    const highest = Math.max(...values.map((line) => Math.max(...line)), 0);
    values.forEach((line, i) => {
      const y = (v) => few(HIGH - 2 - share(v, highest) * (HIGH - 6));
      const points = line.map((v, k) => `${few((k + 0.5) / length * WIDE)} ${y(v)}`);
      setAttribute(lines[i], "d", `M0 ${y(line[0])}L${points.join("L")}L${WIDE} ${y(line[length - 1])}`);
    });
    setText(most, unit(highest));
    setText(end, duration(length * step));
    setAttribute(picture, "aria-valuemax", length - 1);
    show(at < 0 ? length - 1 : at);
    // A table of at most 60 lines: of several points what a line of the picture has at most.
    const joined = Math.ceil(length / 60);
    const lengthOf = Math.ceil(length / joined);
    rows.update(Array.from({ length: lengthOf }, (_, k) => [duration(k * joined * step),
      ...values.map((line) => unit(Math.max(...line.slice(k * joined, (k + 1) * joined))))]));
  } };
}

function overTime() {
  const rate = chart("Mini-batches in a second", ["succeeded", "attempts that failed"], (v) => count(few(v)));
  const latency = chart("Time in run()", ["mean", "longest"], duration);
  const cuts = el("p", { class: "note" });
  const node = section("Over time", el("div", { class: "charts" }, rate.node, latency.node), cuts);
  return { node, update(data) {
    const s = data.series;
    node.hidden = s.succeeded.length === 0;
    // The last step is under way: it has not had all of its time.
    const lastStep = data.seconds - (s.succeeded.length - 1) * s.step;
    const perSecond = (n, i, all) => n / (i + 1 < all.length ? s.step : Math.min(s.step, Math.max(lastStep, s.step / 4)));
    rate.update(s.step, [s.succeeded.map(perSecond), s.failed.map(perSecond)]);
    latency.update(s.step, [s.mean, s.longest]);
    setText(cuts, s.cuts.length === 0 ? "" : "Left out, since no coordinator ran: " +
      s.cuts.map(([at, length]) => `${duration(length)} after ${duration(at)}`).join(", "));
  } };
}

// --- processes

const LETTERS = [["R", "run()"], ["D", "data and rows"], ["W", "waiting"]];

function sharesOf(p) {
  const run = Math.min(1, share(p.run, p.span));
  const data = Math.min(1 - run, Math.max(0, share(p.elapsed - p.run, p.span)));
  return [run, data, Math.max(0, 1 - run - data)];
}

function processes() {
  const told = el("p", { class: "note" });
  const key = el("ul", { class: "legend" }, ...LETTERS.map(([letter, name]) => el("li", { class: "phase" + letter }, `${letter} ${name}`)));
  const nodes = el("dl", { class: "nodes" });
  const rows = table("Figures of each process", [["Node", true], ["Process"], ["Attempts", true], ["Failed", true], ["Items", true],
    ["In run()", true], ["Data and rows", true], ["Waiting", true], ["Mean run()", true], ["CPU of run()", true]]);
  const node = section("Processes", key, nodes, told, more("As a table", rows.node));
  return { node, update(data) {
    const list = data.processes.list;
    node.hidden = list.length === 0;
    const byNode = new Map();
    for (const p of list) byNode.set(p.node, [...(byNode.get(p.node) || []), p]);
    each(nodes, [...byNode], () => el("div", {}, el("dt"), el("dd", {}, el("ul", { class: "strip" }))), (pair, [index, all]) => {
      setText(pair.children[0], "node " + index);
      each(pair.children[1].firstElementChild, all, () => el("li", {}, el("b", {}, ""), el("span", {}, "")), (chip, p) => {
        const shares = sharesOf(p);
        const [letter, name] = LETTERS[shares.indexOf(Math.max(...shares))];
        setAttribute(chip, "class", "phase" + letter);
        setAttribute(chip, "title", clean(`${p.name}: mostly ${name}, ${percent(Math.max(...shares))}`));
        setText(chip.children[0], letter);
        setText(chip.children[1], p.name.replace("process", ""));
      });
    });
    const left = data.processes.count - list.length;
    setText(told, left > 0 ? `The ${list.length} processes with most time are shown, of ${data.processes.count}.` : "");
    rows.update(list.map((p) => [p.node, p.name, count(p.attempts), count(p.failed), count(p.items),
      ...sharesOf(p).map(percent), duration(share(p.run, p.attempts)), p.run < 0.005 * p.attempts ? "–" : percent(share(p.cpu, p.run))]));
  } };
}

// --- the map, the slowest, the configuration

const CELL = 10, COLUMNS = 64;

function map() {
  const cells = shape("g");
  const picture = shape("svg", { class: "map", role: "img" }, cells);
  const told = el("p", { class: "note" });
  const key = el("ul", { class: "legend" }, el("li", { class: "succeeded" }, "succeeded"),
    el("li", { class: "failed" }, "with failures (×)"), el("li", { class: "pending" }, "not settled"));
  const rows = table("Cells with failures", [["Mini-batches"], ["Succeeded", true], ["Failed", true]]);
  const list = more("Cells with failures, as a table", rows.node);
  const node = section("Mini-batches", key, picture, told, list);
  const make = () => shape("g", {}, shape("rect", { class: "ground", width: CELL - 1, height: CELL - 1 }),
    shape("rect", { class: "done", width: CELL - 1 }), shape("path", { class: "cross" }));
  return { node, update(data) {
    const { perCell, planned, succeeded, failed } = data.map;
    const length = succeeded.length;
    node.hidden = length === 0;
    const columns = Math.min(COLUMNS, Math.max(length, 16));
    setAttribute(picture, "viewBox", `0 0 ${columns * CELL} ${Math.ceil(length / columns) * CELL}`);
    each(cells, succeeded, make, (cell, ok, i) => {
      const size = Math.min(perCell, planned - i * perCell);
      const x = (i % columns) * CELL, y = Math.floor(i / columns) * CELL;
      setAttribute(cell, "transform", `translate(${x} ${y})`);
      const height = few((CELL - 1) * share(ok, size));
      setAttribute(cell.children[1], "height", height);
      setAttribute(cell.children[1], "y", CELL - 1 - height);
      setAttribute(cell.children[2], "d", failed[i] > 0 ? "M1 1L8 8M8 1L1 8" : "");
    });
    const broken = failed.reduce((sum, n) => sum + (n > 0 ? 1 : 0), 0);
    setText(told, `Each cell is ${perCell === 1 ? "a mini-batch" : count(perCell) + " mini-batches"}, in the order of the input.`);
    setAttribute(picture, "aria-label", `A map of ${count(planned)} mini-batches in ${count(length)} cells, ${count(broken)} of them with failures`);
    list.hidden = broken === 0;
    const bad = failed.map((n, i) => [n, i]).filter(([n]) => n > 0).slice(0, 100);
    rows.update(bad.map(([n, i]) => {
      const last = Math.min((i + 1) * perCell, planned) - 1;
      return [perCell === 1 ? String(i) : `${i * perCell} to ${last}`, count(succeeded[i]), count(n)];
    }));
  } };
}

function slowest() {
  const rows = table("The longest run() first", [["run()", true], ["In all", true], ["CPU", true], ["Mini-batch", true], ["Made of"], ["Items", true],
    ["Node", true], ["Process"], ["Became"]]);
  const node = section("Slowest attempts", rows.node);
  return { node, update(data) {
    node.hidden = data.slowest.length === 0;
    rows.update(data.slowest.map((s) => [duration(s.run), duration(s.elapsed), duration(s.cpu), s.miniBatch, s.item, count(s.items),
      s.node, s.process, s.succeeded ? "succeeded" : "failed"]));
  } };
}

function settings() {
  const set = table("What is not the default", [["Field"], ["Value"]]);
  const others = table("What is the default", [["Field"], ["Value"]]);
  const rest = el("summary", {}, "");
  const node = section("Configuration", set.node, el("details", {}, rest, others.node));
  return { node, update(data) {
    node.hidden = data.settings.length === 0;
    const pick = (isDefault) => data.settings.filter((s) => s[2] === isDefault).map(([path, value]) => [path, value]);
    set.update(pick(false));
    others.update(pick(true));
    setText(rest, `Defaults (${pick(true).length})`);
  } };
}

// --- logs

const LOG_PART = 1 << 16, LOG_KEPT = 1 << 20;
const COLOURS = /\u001b\[[0-9;]*[A-Za-z]/g;
// Where a process has its logs, below the log folder (docs/logs.md).
const OF_PROCESS = [
  ["output", (node, name) => `user/stdout/${node}/${name}.stdout.txt`],
  ["errors", (node, name) => `user/error/${node}/${name}.txt`],
  ["stderr", (node, name) => `user/stderr/${node}/${name}.stderr.txt`],
  ["logger", (node, name) => `user/entry_script_log/${node}/${name}.log.txt`],
  ["mini-batches", (node, name) => `sys/node/${node}/${name}.txt`],
];

// Reads a log from its end, and what comes. `ask` fetches.
function logs(ask) {
  const of = el("select");
  const kind = el("select", {}, ...OF_PROCESS.map(([name]) => el("option", {}, name)));
  const kindLabel = el("label", {}, "Which ", kind);
  const find = el("input", { type: "search" });
  const follow = el("input", { type: "checkbox" });
  follow.checked = true;
  const earlier = el("button", { type: "button" }, "Earlier lines");
  const told = el("p", { class: "note" });
  const found = el("output");
  const text = el("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Lines of the log" });
  const box = el("details", {}, el("summary", {}, "Read a log"),
    el("div", { class: "controls" }, el("label", {}, "Of ", of), kindLabel, el("label", {}, "Lines with ", find),
      el("label", {}, follow, " Follow"), earlier), told, found, text);
  const node = section("Logs", box);
  let path = "", from = 0, bytes = new Uint8Array(), fresh = true, busy = false, problem = "", over = "";

  function draw() {
    const atEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 40;
    const lines = new TextDecoder().decode(bytes).replace(COLOURS, "").replace(/\r\n?/g, "\n").split("\n");
    if (lines[lines.length - 1] === "") lines.pop();
    if (from > 0 && lines.length > 1) lines.shift();  // it began earlier
    const wanted = find.value.toLowerCase();
    const shown = wanted ? lines.filter((line) => line.toLowerCase().includes(wanted)) : lines;
    setText(text, shown.join("\n"));
    setText(told, over ? `${over}/${path}` : `${path}: ${problem || (from > 0 ? `its last ${bytesText(bytes.length)}` : `all of it, ${bytesText(bytes.length)}`)}`);
    earlier.hidden = from === 0 || bytes.length >= LOG_KEPT;
    if (follow.checked && atEnd) text.scrollTop = text.scrollHeight;
    return wanted ? `${count(shown.length)} of ${count(lines.length)} lines` : "";
  }
  async function part(at) {
    const answer = await ask(`v1/log?path=${encodeURIComponent(path)}${at === null ? "" : `&from=${at}`}`);
    if (answer.status === 404) throw new Error("there is none (yet)");
    if (!answer.ok) throw new Error("it cannot be read: " + (await answer.text()).slice(0, 200));
    const number = (name) => Number(answer.headers.get(name));
    return { from: number("Log-From"), size: number("Log-Size"), bytes: new Uint8Array(await answer.arrayBuffer()) };
  }
  // What is kept and what has come, at most LOG_KEPT of its end.
  function take(first, before, after) {
    const all = new Uint8Array(before.length + after.length);
    all.set(before);
    all.set(after, before.length);
    const over = Math.max(0, all.length - LOG_KEPT);
    from = first + over;
    bytes = all.subarray(over);
  }
  async function read(earlierToo) {
    if (busy || over || !path) return;
    busy = true;
    const mine = path;
    try {
      if (fresh) {
        const end = await part(null);
        if (mine !== path) return;
        fresh = false;
        take(end.from, new Uint8Array(), end.bytes);
        text.scrollTop = text.scrollHeight;
      } else if (earlierToo) {
        const first = Math.max(0, from - LOG_PART);
        const before = await part(first);
        if (mine !== path) return;
        take(first, before.bytes.subarray(0, from - first), bytes);
      } else {
        const end = from + bytes.length;
        const next = await part(end);
        if (mine !== path) return;
        // Another file, or far more than is kept: from its end again.
        if (next.from !== end || next.size - end > LOG_KEPT) fresh = true;
        else take(from, bytes, next.bytes);
      }
      problem = "";
    } catch (error) {
      if (mine === path) problem = error instanceof TypeError ? "the coordinator does not answer" : error.message;
    } finally {
      busy = false;
    }
    if (mine === path) draw();
  }
  function open(wanted) {
    if (wanted === path) return;
    path = wanted;
    fresh = true;
    bytes = new Uint8Array();
    from = 0;
    setText(text, "");
    draw();
    read();
  }
  function choose() {
    const [where, process] = of.value.split("/");
    kindLabel.hidden = !process;
    if (process) open(OF_PROCESS[kind.selectedIndex][1](where, process));
    else open(where === "" ? "sys/master_role.txt" : `sys/node/${where}/_main.txt`);
  }
  of.addEventListener("change", choose);
  kind.addEventListener("change", choose);
  find.addEventListener("input", () => setText(found, draw()));
  follow.addEventListener("change", () => { text.scrollTop = text.scrollHeight; });
  earlier.addEventListener("click", () => read(true));
  box.addEventListener("toggle", () => { if (box.open && !path) choose(); });
  setInterval(() => { if (box.open && !document.hidden && (fresh || follow.checked)) read(); }, 1000);

  return { node,
    show(log) {
      const match = /^user\/error\/(\d+)\/(process\d+)\.txt$/.exec(log);
      if (match) {
        of.value = `${match[1]}/${match[2]}`;
        kind.selectedIndex = 1;
        kindLabel.hidden = false;
      }
      box.open = true;
      open(log);
      node.scrollIntoView();
      text.focus();
    },
    // What was read stays, and what it is of is said.
    end(folder) {
      over = folder;
      draw();
    },
    update(data) {
      const options = [["", "coordinator"]];
      for (const p of data.processes.list) {
        const agent = String(p.node);
        if (options[options.length - 1][0].split("/")[0] !== agent) options.push([agent, `node ${p.node}`]);
        options.push([`${p.node}/${p.name}`, `node ${p.node}, ${p.name}`]);
      }
      each(of, options, () => el("option"), (option, [value, name]) => {
        setAttribute(option, "value", clean(value));
        setText(option, name);
      });
    } };
}

// --- all of it

// `ask` fetches from the coordinator, where there is one.
function page(root, ask) {
  const log = ask ? logs(ask) : null;
  const views = [top(), advice(), errors(log && log.show), overTime(), processes(), map(), slowest(), settings()];
  if (log) views.splice(3, 0, log);
  root.replaceChildren(...views.map((view) => view.node));
  const foot = el("footer");
  root.append(foot);
  return {
    show(data) {
      for (const view of views) view.update(data);
      setText(foot, `ParallelRun ${data.release}, ${data.madeAt}`);
    },
    end(data) {
      if (log) log.end(data.logFolder);
    },
  };
}

// --- live

// The blocks of a stream of server-sent events: calls `take` with each event's fields.
function parser(take) {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = {};
      for (const line of block.split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
      }
      if (event.data) take(event);
    }
  };
}

function live(root) {
  const token = new URLSearchParams(location.hash.slice(1)).get("t");
  // Neither the history nor whoever looks over a shoulder should have it.
  history.replaceState(null, "", location.pathname + location.search);
  const banner = el("p", { class: "banner", role: "status" });
  const views = el("div", { hidden: "" });
  root.append(banner, views);
  if (!token) {
    root.prepend(el("h1", {}, "ParallelRun"));
    setText(banner, "Open the whole address that the command has printed, with the part after #.");
    return;
  }
  const authorized = (url, headers) => fetch(url, { headers: { Authorization: "Bearer " + token, ...headers }, cache: "no-store", credentials: "omit" });
  const shown = page(views, authorized);
  let data = null, last = "", over = false, due = false;

  // Once for what came together, and not at all while nobody looks.
  function draw() {
    if (due || !data) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      views.hidden = false;
      shown.show(data);
    });
  }
  function take(event) {
    last = event.id;
    if (event.event === "end") over = true;
    if (event.event === "snapshot") data = JSON.parse(event.data);
    if (event.event === "delta") data = Object.assign({}, data, JSON.parse(event.data));
    draw();
  }
  async function listen() {
    const answer = await authorized("v1/events", last ? { "Last-Event-ID": last } : {});
    if (answer.status === 401) throw new Error("the address is of another run");
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 300));
    setText(banner, "");
    const feed = parser(take);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      feed(value);
    }
  }
  async function follow() {
    while (!over) {
      let why = "the coordinator does not answer";
      try {
        await listen();
      } catch (error) {
        if (!(error instanceof TypeError)) why = error.message;
      }
      if (over) break;
      setText(banner, `Not live: ${why}. Trying again; if the run has ended, its report is in its log folder.`);
      await new Promise((wake) => setTimeout(wake, 2000));
    }
    shown.end(data);
    setText(banner, `The run is over. The report is ${data.logFolder}/report.html`);
  }
  document.addEventListener("visibilitychange", draw);
  follow();
}

const root = document.getElementById("page");
const inlined = document.getElementById("data");
if (inlined) page(root).show(JSON.parse(inlined.textContent));
else live(root);

})();
