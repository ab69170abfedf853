// What the page does by itself: it draws its charts, answers "what if" with the planner (planner.js),
// keeps that in the link, and gives tables away as CSV. It asks nothing of any network.
"use strict";

(() => {
  const values = JSON.parse(document.getElementById("values").textContent);
  const words = values.words;

  // ---- Small things ------------------------------------------------------------------------------

  /** An element with attributes, listeners (onclick, ...) and children; texts stay texts. */
  function make(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((each) => each !== null && each !== undefined));
    return made;
  }

  /** A sentence of words with its parts in place: fill("Buy {what}", {what: "2"}). */
  const fill = (text, parts) =>
    text.replace(/\{(\w+)\}/g, (_, key) => parts[key] ?? "").replace(/(\d) %/g, "$1\u00a0%");

  const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
  const LONGEST_NAME = 40;

  /** A name in a sentence: nothing in it turns or hides what follows, and it is not too long. */
  function nameOf(text) {
    const clean = text.replace(HIDDEN, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const half = LONGEST_NAME / 2;
    return clean.length > LONGEST_NAME ? `${clean.slice(0, half)}…${clean.slice(1 - half)}` : clean;
  }

  const group = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, values.money.thousands);

  const sayCount = (count) => `${count < 0 ? "−" : ""}${group(String(Math.abs(count)))}`;

  function sayNumber(value, places, sign = false) {
    const [whole, rest] = Math.abs(value).toFixed(places).split(".");
    const isZero = Number(value.toFixed(places)) === 0;
    const before = isZero ? "" : value < 0 ? "−" : sign ? "+" : "";
    return before + group(whole) + (rest ? values.money.decimal + rest : "");
  }

  /** Decimals by which a figure keeps two digits that count. */
  const placesOf = (value) =>
    value ? Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(Math.abs(value))))) : 2;

  const sayShare = (share) => `${Math.round(100 * share)} %`;

  function download(name, text, type) {
    const link = make("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
    link.click();
    // a busy machine may begin with it only seconds later
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  function copy(text, button) {
    const done = () => {
      const before = button.textContent;
      button.textContent = words.copied;
      setTimeout(() => (button.textContent = before), 1500);
    };
    const byHand = () => {
      const field = make("textarea", {class: "aside"}, text);
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
  }

  // ---- Money -------------------------------------------------------------------------------------
  // Amounts are whole numbers of the instance's unit, a fraction [above, below] of the user's money.

  const parseUnit = (text) => {
    const [above, below = "1"] = text.split("/");
    const digits = (above.split(".")[1] ?? "").length;
    return [Number(above.replace(".", "")), Number(below) * 10 ** digits];
  };

  const MOST_UNITS = 1e15; // that money is counted in, as in the planner
  const findDivisor = (one, other) => (other ? findDivisor(other, one % other) : one);

  const unitOf = (instance) => parseUnit(instance.unit);
  const toMoney = (instance, units) => (units * unitOf(instance)[0]) / unitOf(instance)[1];

  function sayMoney(instance, units) {
    const amount = toMoney(instance, units);
    const places = Number.isInteger(amount) ? 0 : Math.min(6, String(amount).split(".")[1]?.length ?? 2);
    return sayNumber(amount, places) + (values.money.currency ? ` ${values.money.currency}` : "");
  }

  /** Units of so much money, as it was typed; the instance counts more finely where it must. */
  function readMoney(instance, text) {
    const found = /^\s*(\d{1,15})(?:[.,](\d{1,6}))?\s*$/.exec(String(text));
    if (!found) return null;
    const [above, below] = unitOf(instance);
    const digits = found[2] ?? "";
    const amount = Number(found[1] + digits) * below;
    const parts = 10 ** digits.length * above; // so many of `amount` make a unit
    const finer = parts / findDivisor(amount, parts);
    const units = (amount * finer) / parts;
    return units <= MOST_UNITS && canCount(instance, finer) ? {units, finer} : null;
  }

  /** Whether money may be counted so many times as finely, and stay a number that is exact. */
  const canCount = (instance, times) =>
    [instance.budget, ...instance.tasks.flatMap((task) => [task.fee, ...task.prices.map(([, price]) => price)])]
      .every((units) => units * times <= MOST_UNITS);

  /** The same instance with money counted so many times as finely. */
  function refine(instance, times) {
    if (times === 1) return instance;
    const [above, below] = unitOf(instance);
    return {
      ...instance,
      unit: `${above}/${below * times}`,
      budget: instance.budget * times,
      tasks: instance.tasks.map((task) => ({
        ...task,
        fee: task.fee * times,
        prices: task.prices.map(([after, price]) => [after, price * times]),
      })),
    };
  }

  // ---- Charts ------------------------------------------------------------------------------------

  function drawAll() {
    for (const place of document.querySelectorAll("[data-chart]")) {
      const kind = place.dataset.chart;
      const given = values.charts[kind][Number(place.dataset.at ?? 0)];
      const width = Math.max(240, Math.min(place.clientWidth || 360, kind === "curve" ? 480 : 720));
      place.replaceChildren(Charts[kind]({sayMoney: (amount) => sayNumber(amount, 0), ...given}, width));
    }
  }

  // ---- Tables as CSV -----------------------------------------------------------------------------

  const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  const FIGURE = /^[+-]?[\d.,]+( %| \([−\d., to%]+\))?$/; // +1.2, or +1.2 (0.3 to 2.1)

  /** A table's cells as they are read. Spreadsheets take a cell that begins with one of these signs
   * for a formula, so that it gets an apostrophe. */
  function listCells(table) {
    const rows = [...table.querySelectorAll("tr")].map((row) =>
      [...row.cells].map((cell) => {
        const text = tellCell(cell).replace(/\s+/g, " ").trim();
        return quote(/^[=+\-@\t]/.test(text) && !FIGURE.test(text) ? `'${text}` : text);
      }).join(","));
    return `${rows.join("\r\n")}\r\n`;
  }

  /** What a cell says; a control says its value. */
  function tellCell(cell) {
    const control = cell.querySelector("input");
    if (!control) return [...cell.childNodes].map((node) => node.textContent).join(" ");
    return control.type === "checkbox" ? String(control.checked) : control.value;
  }

  function offerTables() {
    for (const place of document.querySelectorAll(".wide")) {
      const table = place.querySelector("table");
      const name = table.caption.textContent;
      const button = make("button", {type: "button", class: "csv", "aria-label": `${words.csv}: ${name}`,
        onclick: () => download(`${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.csv`, listCells(table), "text/csv")},
        words.csv);
      place.after(button);
    }
  }

  // ---- What if -----------------------------------------------------------------------------------

  const LINKED = /^\d{1,15}(\.\d{1,12})?$/; // what a link holds of a number
  const FIELDS = ["price", "weight", "least", "most", "hold"];

  const isAsked = () => location.hash.startsWith("#what-if:");

  /** What the link says is changed: {budget, tasks: {place: {field: text}}}; anything odd is left
   * out, since a link comes from anywhere. */
  function readLink() {
    const found = {budget: null, tasks: {}};
    for (const part of location.hash.replace(/^#what-if:/, "").split("&")) {
      const [key, text] = part.split("=");
      if (!isAsked() || !LINKED.test(text ?? "")) continue;
      const field = /^(\d{1,4})\.(price|weight|least|most|hold)$/.exec(key);
      if (key === "budget") found.budget = text;
      else if (field && Number(field[1]) < values.instance.tasks.length) {
        (found.tasks[Number(field[1])] ??= {})[field[2]] = text; // 00 is 0
      }
    }
    return found;
  }

  function writeLink(edits) {
    const parts = edits.budget === null ? [] : [["budget", edits.budget]];
    for (const [place, fields] of Object.entries(edits.tasks)) {
      for (const field of FIELDS) if (fields[field] !== undefined) parts.push([`${place}.${field}`, fields[field]]);
    }
    const kept = parts.filter(([, text]) => LINKED.test(text)).map((part) => part.join("="));
    if (!kept.length && !isAsked()) return; // it may name a part of the page
    const link = kept.length ? `#what-if:${kept.join("&")}` : location.pathname + location.search;
    if (link === location.hash) return;
    try {
      history.replaceState(null, "", link);
    } catch {
      // some viewers of local files do not let a page change its link
    }
  }

  const escapeSign = (sign) => sign.replace(/[^\w\s]/g, "\\$&");
  const GROUPED = new RegExp(`^\\d{1,3}(${escapeSign(values.money.thousands)}\\d{3})+(${escapeSign(values.money.decimal)}\\d+)?$`);

  /** A number as a reader types it, with the page's own signs or with a decimal comma: 6,300 is what
   * the page itself writes, and not a bit more than 6. */
  function readTyped(given) {
    const text = given.trim();
    const whole = GROUPED.test(text) ? text.replaceAll(values.money.thousands, "") : text;
    return whole.replace(",", ".");
  }

  const isWhole = (text) => /^\d{1,12}$/.test(text);

  /** The instance with the reader's changes, and what could not be taken. */
  function apply(edits) {
    let instance = structuredClone(values.instance);
    const wrong = [];
    const weights = instance.tasks.map((task) => task.weight);
    const take = (text, put, what, least = 0) => {
      const money = readMoney(instance, text);
      if (money === null || money.units < least) return wrong.push(fill(words.notMoney, {what, text}));
      instance = refine(instance, money.finer);
      put(money.units);
    };
    if (edits.budget !== null) take(edits.budget, (units) => (instance.budget = units), words.budget);
    for (const [place, fields] of Object.entries(edits.tasks)) {
      const name = nameOf(instance.tasks[place].name);
      const set = (key, value) => (instance.tasks[place][key] = value);
      if (fields.price !== undefined) take(fields.price, (units) => (instance = changePrice(instance, place, units)), name, 1);
      if (fields.weight !== undefined) {
        const weight = Number(fields.weight);
        if (Number.isFinite(weight) && weight <= 1e6) weights[place] = weight;
        else wrong.push(fill(words.notNumber, {what: name, text: fields.weight}));
      }
      for (const [field, key] of [["least", "least"], ["most", "most"], ["hold", "frozen"]]) {
        if (fields[field] === undefined) continue;
        if (isWhole(fields[field])) set(key, Number(fields[field]));
        else wrong.push(fill(words.notWhole, {what: name, text: fields[field]}));
      }
    }
    // what labels of one task do to others depends on how much these count
    const same = weights.every((weight, at) => weight === instance.tasks[at].weight);
    return {instance: same ? instance : reweigh(instance, weights), wrong};
  }

  /** The instance with another price of a task's first label; the later ones change by the same
   * factor, and money is counted more finely where that makes them no whole numbers. */
  function changePrice(instance, place, units) {
    const {prices} = instance.tasks[place];
    const first = prices[0][1];
    const wanted = prices.map(([, price]) => price * units); // of 1 / first of a unit
    const finer = first / wanted.reduce(findDivisor, first);
    const exact = canCount(instance, finer) && wanted.every((amount) => amount * finer <= MOST_UNITS);
    const finest = refine(instance, exact ? finer : 1);
    const changed = prices.map(([after], at) => [after, Math.round((wanted[at] * (exact ? finer : 1)) / first)]);
    finest.tasks = finest.tasks.map((task, at) => (at === Number(place) ? {...task, prices: changed} : task));
    return finest;
  }

  const meanOf = (instance, value) => {
    const total = instance.tasks.reduce((sum, task) => sum + task.weight, 0);
    return values.isMean && total ? value / total : value;
  };

  function startWhatIf(place) {
    const base = {instance: values.instance, plan: solve(values.instance)};
    if (!base.plan.feasible) return;
    let edits = readLink();
    const parts = layOut(place, base, (change) => {
      change(edits);
      show();
    });
    parts.back.addEventListener("click", () => {
      edits = {budget: null, tasks: {}};
      show();
    });
    parts.save.addEventListener("click", () => download("what-if.toml", writeToml(apply(edits).instance), "application/toml"));
    parts.link.addEventListener("click", () => copy(location.href, parts.link));
    let planned = 0;
    function show() {
      writeLink(edits);
      cancelAnimationFrame(planned);
      planned = requestAnimationFrame(() => {
        const {instance, wrong} = apply(edits);
        showResult(parts, base, instance, wrong.length ? null : solve(instance), wrong, edits);
      });
    }
    window.addEventListener("hashchange", () => {
      if (!isAsked()) return; // a part of the page was gone to; what was asked stays
      edits = readLink();
      show();
    });
    show();
  }

  /** The panel: money, a row for each task, what comes of it. */
  function layOut(place, base, change) {
    const {instance, plan} = base;
    const top = 3 * instance.budget || 1;
    const steps = Math.min(300, top); // of a unit of money or more each, or one would lead nowhere
    const slider = make("input", {type: "range", id: "wi-budget", min: 0, max: steps, step: 1,
      oninput: () => change((edits) => (edits.budget = tellMoney(instance, Math.round((top * slider.value) / steps))))});
    const budget = make("input", {type: "text", inputmode: "decimal", class: "money", "aria-label": words.budget,
      onchange: () => change((edits) => (edits.budget = readTyped(budget.value) || null))});
    const rows = instance.tasks.map((task, at) => layOutTask(task, at, plan.counts[at], change));
    const heads = [words.task, words.price, words.weight, words.least, words.most, words.hold, words.buy, words.change, words.gain];
    const table = make("table", {}, make("caption", {}, words.whatIf),
      make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", {scope: "col", class: at ? "number" : "name"}, head)))),
      make("tbody", {}, ...rows.map((row) => row.line)));
    const parts = {
      slider, budget, rows,
      said: make("p", {class: "sentence", "aria-live": "polite"}),
      changes: make("ul", {class: "changes"}),
      wrong: make("p", {class: "wrong", role: "alert"}),
      back: make("button", {type: "button"}, words.back),
      save: make("button", {type: "button"}, words.save),
      link: make("button", {type: "button"}, words.link),
    };
    place.append(
      make("div", {class: "knobs"}, make("label", {for: "wi-budget"}, words.budget), slider, budget),
      parts.wrong, parts.said, // where the eye is while the slider moves, also on a phone
      make("div", {class: "wide cards", role: "region", "aria-label": fill(words.table, {label: words.whatIf}), tabindex: "0"}, table),
      parts.changes,
      make("p", {class: "buttons"}, parts.back, parts.save, parts.link));
    return parts;
  }

  const tellMoney = (instance, units) => String(Number(toMoney(instance, units).toFixed(6)));

  function layOutTask(task, at, count, change) {
    const edit = (field) => (event) => change((edits) => {
      const text = event.target.type === "checkbox"
        ? (event.target.checked ? row.bought.dataset.count ?? String(count) : "") : event.target.value.trim();
      const mine = (edits.tasks[at] ??= {});
      if (text === "") delete mine[field];
      else mine[field] = readTyped(text);
    });
    const field = (name, mode) => make("input", {type: "text", inputmode: mode, class: "small",
      "aria-label": `${words[name]}: ${nameOf(task.name)}`, onchange: edit(name)});
    const row = {
      price: field("price", "decimal"), weight: field("weight", "decimal"),
      least: field("least", "numeric"), most: field("most", "numeric"),
      hold: make("input", {type: "checkbox", "aria-label": `${words.hold}: ${nameOf(task.name)}`, onchange: edit("hold")}),
    };
    const cell = (inside, head) => make("td", {class: "number", "data-head": words[head]}, inside);
    row.line = make("tr", {}, make("th", {scope: "row", class: "name"}, make("bdi", {}, nameOf(task.name))),
      ...["price", "weight", "least", "most", "hold"].map((head) => cell(row[head], head)),
      ...[["bought", "buy"], ["moved", "change"], ["gain", "gain"]].map(([key, head]) => {
        row[key] = make(key === "bought" ? "strong" : "span");
        return cell(row[key], head);
      }));
    return row;
  }

  function showResult(parts, base, instance, plan, wrong, edits) {
    parts.wrong.textContent = [...wrong, ...(plan?.clashes ?? [])].join("; ");
    fillFields(parts, base, instance, edits);
    if (!plan?.feasible) {
      parts.said.textContent = "";
      parts.changes.replaceChildren();
      for (const row of parts.rows) {
        delete row.bought.dataset.count;
        for (const key of ["bought", "moved", "gain"]) row[key].textContent = key === "moved" ? "" : "–";
      }
      return;
    }
    parts.rows.forEach((row, at) => {
      const [count, before] = [plan.counts[at], base.plan.counts[at]];
      row.bought.textContent = sayCount(count);
      row.bought.dataset.count = String(count);
      row.moved.textContent = count === before ? "" : `${count > before ? "+" : ""}${sayCount(count - before)}`;
      row.moved.className = count > before ? "more" : "fewer";
      row.gain.textContent = sayNumber(plan.gains[at], placesOf(plan.gains[at]));
    });
    const [mean, was] = [meanOf(instance, plan.value), meanOf(base.instance, base.plan.value)];
    const places = placesOf(Math.max(Math.abs(mean), Math.abs(was)) / 10);
    const told = {
      what: listCounts(instance, plan.counts), money: sayMoney(instance, plan.spent),
      gain: `${sayNumber(mean, places)} ${values.unit}`, change: sayNumber(mean - was, places, true),
    };
    const same = plan.counts.every((count, at) => count === base.plan.counts[at]);
    parts.said.textContent = fill(same ? words.same : words.answer, told);
    parts.changes.replaceChildren(...explain(base, instance, plan).map((each) => make("li", {}, each)));
  }

  function fillFields(parts, base, instance, edits) {
    const put = (input, text) => {
      if (document.activeElement !== input || input.type !== "text") input.value = text;
    };
    put(parts.budget, edits.budget ?? tellMoney(base.instance, base.instance.budget));
    const share = toMoney(instance, instance.budget) / (toMoney(base.instance, base.instance.budget) || 1);
    parts.slider.value = String(Math.round((parts.slider.max * share) / 3));
    parts.slider.setAttribute("aria-valuetext", sayMoney(instance, instance.budget));
    parts.rows.forEach((row, at) => {
      const mine = edits.tasks[at] ?? {};
      const task = base.instance.tasks[at];
      put(row.price, mine.price ?? tellMoney(base.instance, task.prices[0][1]));
      put(row.weight, mine.weight ?? String(task.weight));
      put(row.least, mine.least ?? (task.least ? String(task.least) : ""));
      put(row.most, mine.most ?? (task.most ?? "") + "");
      row.hold.checked = mine.hold !== undefined || task.frozen !== null;
      row.hold.disabled = task.frozen !== null; // decided already
      for (const field of FIELDS) row[field].classList.toggle("changed", mine[field] !== undefined);
    });
  }

  const MOST_NAMED = 6;

  function listCounts(instance, counts) {
    const bought = instance.tasks.map((task, at) => [nameOf(task.name), counts[at]]).filter(([, count]) => count);
    const named = bought.slice(0, MOST_NAMED).map(([name, count]) => `${sayCount(count)} ${name}`);
    if (bought.length > MOST_NAMED) named.push(fill(words.others, {count: bought.length - MOST_NAMED}));
    return named.length ? named.join(", ") : words.nothing;
  }

  /** What is different from the plan, and which change of the reader's did it. */
  function explain(base, instance, plan) {
    const found = [];
    const [before, now] = [toMoney(base.instance, base.instance.budget), toMoney(instance, instance.budget)];
    if (before !== now) {
      found.push(fill(words.budgetMoved, {before: sayMoney(base.instance, base.instance.budget),
        now: sayMoney(instance, instance.budget)}));
    }
    instance.tasks.forEach((task, at) => {
      const old = base.instance.tasks[at];
      const why = [];
      const price = [toMoney(base.instance, old.prices[0][1]), toMoney(instance, task.prices[0][1])];
      if (price[0] !== price[1]) why.push(fill(words.priceMoved, {before: String(price[0]), now: String(price[1])}));
      if (old.weight !== task.weight) why.push(fill(words.weightMoved, {before: String(old.weight), now: String(task.weight)}));
      if (task.frozen !== old.frozen && task.frozen !== null) why.push(fill(words.held, {count: sayCount(task.frozen)}));
      else if (task.least !== old.least && plan.counts[at] === task.least) why.push(fill(words.atLeast, {count: sayCount(task.least)}));
      else if (task.most !== old.most && plan.counts[at] === task.most) why.push(fill(words.atMost, {count: sayCount(task.most)}));
      const moved = plan.counts[at] - base.plan.counts[at];
      if (moved || why.length) {
        const by = moved ? fill(moved > 0 ? words.more : words.fewer, {count: sayCount(Math.abs(moved))}) : words.asBefore;
        found.push(`${nameOf(task.name)}: ${by}${why.length ? ` (${why.join("; ")})` : ""}`);
      }
    });
    const [old, next] = [base.plan.moneyWorth / unitSize(base.instance), plan.moneyWorth / unitSize(instance)]
      .map((worth) => meanOf(instance, worth));
    if (found.length) {
      found.push(fill(words.nextMoney, {before: sayNumber(old, placesOf(old)), now: sayNumber(next, placesOf(next)), unit: values.unit}));
    }
    if (!plan.exact) found.push(words.inexact);
    return found;
  }

  const unitSize = (instance) => unitOf(instance)[0] / unitOf(instance)[1];

  const tellText = (text) => JSON.stringify(text).replace(/\u007f/g, "\\u007f");

  /** Exact money as TOML holds it: a number, or "1/3" where digits do not end. */
  function tellExact(unit, units) {
    const [above, below] = parseUnit(unit);
    const common = findDivisor(units * above, below);
    const [most, least] = [(units * above) / common, below / common];
    return isDecimal(least) ? String(most / least) : `"${most}/${least}"`;
  }

  /** Whether the digits of 1 / number end. */
  function isDecimal(number) {
    let left = number;
    for (const factor of [2, 5]) while (left % factor === 0) left /= factor;
    return left === 1;
  }

  const CURVES = {
    geometric: ({size, keep}) => `informativeness = ${size}, reduction = ${keep}`,
    power: ({size, have, exponent, ceiling}) =>
      `worth = ${size}, have = ${have}, exponent = ${exponent}${(ceiling ?? null) === null ? "" : `, ceiling = ${ceiling}`}`,
    logarithmic: ({size, have}) => `worth = ${size}, have = ${have}`,
    table: ({counts, worths}) => `counts = [${counts.join(", ")}], values = [${worths.join(", ")}]`,
  };

  function tellTerm(term) {
    const name = term.curve === "table" ? "tabulated" : term.curve;
    const plain = `{ curve = "${name}", ${CURVES[term.curve](term)} }`;
    if (!term.of) return plain;
    const shares = Object.entries(term.of.shares).map(([task, share]) =>
      `${tellText(task)} = ${Number((share * term.of.step).toFixed(12))}`);
    return `{ curve = "coupled", inner = ${plain}, weights = { ${shares.join(", ")} } }`;
  }

  const tellGain = (terms) =>
    terms.length === 1 ? tellTerm(terms[0]) : `{ curve = "sum", parts = [${terms.map(tellTerm).join(", ")}] }`;

  /** The problem as it is on the screen, as a problem file; lines of it go into campaign.toml, too. */
  function writeToml(instance) {
    const {unit} = instance;
    const lines = [`# ${words.tomlHead}`, `budget = ${tellExact(unit, instance.budget)}`];
    if (instance.count_implied) lines.push("count_implied = true");
    for (const task of instance.tasks) {
      lines.push("", "[[task]]", `name = ${tellText(task.name)}`, `cost = ${tellExact(unit, task.prices[0][1])}`,
        `have = ${task.have}`);
      if (task.weight !== 1) lines.push(`weight = ${task.weight}`);
      if (task.least) lines.push(`least = ${task.least}`);
      for (const key of ["most", "pool", "frozen"]) if (task[key] !== null) lines.push(`${key} = ${task[key]}`);
      if (task.lot !== 1) lines.push(`lot = ${task.lot}`);
      if (task.fee) lines.push(`fee = ${tellExact(unit, task.fee)}`);
      const tiers = task.prices.slice(1).map(([after, price]) => `{ after = ${after}, cost = ${tellExact(unit, price)} }`);
      if (tiers.length) lines.push(`tiers = [${tiers.join(", ")}]`);
      if (task.implies.length) lines.push(`implies = [${task.implies.map(tellText).join(", ")}]`);
      lines.push(`gain = ${tellGain(instance.gains[task.name])}`);
    }
    for (const cap of instance.caps) {
      const uses = Object.entries(cap.use).map(([task, use]) => `${tellText(task)} = ${tellExact(cap.unit, use)}`);
      lines.push("", "[[cap]]", `name = ${tellText(cap.name)}`, `limit = ${tellExact(cap.unit, cap.limit)}`,
        `use = { ${uses.join(", ")} }`);
    }
    return `${[...lines, ...tellNotation()].join("\n")}\n`;
  }

  /** How money is written here, for whoever makes a page of the file. */
  function tellNotation() {
    const {currency, decimal} = values.money;
    const found = currency ? [`currency = ${tellText(currency)}`] : [];
    if (decimal === ",") found.push('decimal = "comma"');
    return found.length ? ["", "[report]", ...found] : [];
  }

  // ---- What a score costs --------------------------------------------------------------------------

  /** Labels from which on a curve reaches a score, between its points; null if it never does. */
  function findCount(points, target, rises) {
    for (let at = 0; at < points.length; at++) {
      const [count, score] = points[at];
      if (rises ? score >= target : score <= target) {
        if (!at) return count;
        const [before, last] = points[at - 1];
        return before + ((target - last) / (score - last || 1)) * (count - before);
      }
    }
    return null;
  }

  function startScores(place) {
    const list = values.reach;
    const choice = make("select", {"aria-label": words.task, onchange: () => { field.value = ""; show(); }},
      ...list.map((each, at) => make("option", {value: at}, `${nameOf(each.task)} (${nameOf(each.metric)})`)));
    const field = make("input", {type: "text", inputmode: "decimal", class: "money", "aria-label": words.score, oninput: () => show()});
    const said = make("p", {"aria-live": "polite"});
    place.append(make("div", {class: "knobs"}, choice, make("label", {}, words.score, " ", field)), said);
    function show() {
      const each = list[choice.value];
      const target = Number(readTyped(field.value));
      if (!field.value.trim() || !Number.isFinite(target)) {
        said.textContent = fill(words.scoreNow, {task: nameOf(each.task), now: sayNumber(each.now, 3), metric: each.metric});
        return;
      }
      said.textContent = each.levels.map(({chance, points}) => {
        const count = findCount(points, target, each.rises);
        if (count === null) return fill(words.outOfReach, {chance: sayShare(chance), count: sayCount(points.at(-1)[0])});
        const more = Math.max(0, Math.ceil(count) - each.have);
        const task = values.instance.tasks.find((one) => one.name === each.task);
        return fill(words.scoreCosts, {chance: sayShare(chance), count: sayCount(more), money: sayMoney(values.instance, priceOf(task, more))});
      }).join(" ");
    }
    show();
  }

  // ---- A plan of one's own -------------------------------------------------------------------------

  function startOwn(place) {
    const {tasks} = values.instance;
    const base = solve(values.instance);
    const fields = tasks.map((task, at) => make("input", {type: "text", inputmode: "numeric", class: "small",
      value: String(base.counts?.[at] ?? 0), "aria-label": `${words.own}: ${nameOf(task.name)}`, oninput: () => show()}));
    const said = make("p", {"aria-live": "polite"});
    place.append(make("div", {class: "knobs"},
      ...tasks.map((task, at) => make("label", {}, make("bdi", {}, nameOf(task.name)), " ", fields[at]))), said);
    function show() {
      const counts = fields.map((field) => (isWhole(field.value.trim()) ? Number(field.value) : NaN));
      if (counts.some(Number.isNaN)) {
        said.textContent = words.wholeOnly;
        return;
      }
      const spent = spendOf(values.instance, counts);
      const [mean, best] = [valueOf(values.instance, counts), base.value].map((value) => meanOf(values.instance, value));
      const places = placesOf(Math.max(Math.abs(mean), Math.abs(best)) / 10);
      const over = spent > values.instance.budget ? ` ${fill(words.tooDear, {money: sayMoney(values.instance, spent - values.instance.budget)})}` : "";
      said.textContent = fill(words.ownWorth, {money: sayMoney(values.instance, spent), gain: `${sayNumber(mean, places)} ${values.unit}`,
        change: sayNumber(mean - best, places, true)}) + over;
    }
    show();
  }

  // ---- All of it -----------------------------------------------------------------------------------

  for (const [id, start] of [["what-if-panel", startWhatIf], ["score-panel", startScores], ["own-panel", startOwn]]) {
    const place = document.getElementById(id);
    if (place) start(place);
  }
  offerTables();
  drawAll();
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    drawAll();
  });
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button.dataset.copy, button));
  }
  document.documentElement.classList.add("ready");
})();
