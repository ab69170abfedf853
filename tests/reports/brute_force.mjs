// Small random problems, each solved by the page's planner and by looking at every plan:
// node brute_force.mjs FILE, with {"first": index, "last": index} in the file.
import { readFileSync } from "node:fs";
import { solve } from "./planner.js";

/** Numbers from 0 to 1 that depend on nothing but the seed (mulberry32). */
function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function makeTools(seed) {
  const random = makeRandom(seed);
  const between = (low, high) => low + random() * (high - low);
  const whole = (low, high) => Math.floor(between(low, high + 1));
  const chance = (share) => random() < share;
  const pick = (list) => list[whole(0, list.length - 1)];
  return { between, whole, chance, pick };
}

function drawTable({ whole }, even) {
  const slopes = Array.from({ length: whole(1, 8) }, () => whole(-1, 6)).sort((a, b) => b - a);
  const [counts, worths] = [[0], [0]];
  for (const slope of slopes) {
    const step = even ? 1 : whole(1, 2);
    counts.push(counts.at(-1) + step);
    worths.push(worths.at(-1) + (slope * step) / (even ? 1 : 10));
  }
  return { curve: "table", counts, worths };
}

function drawTerms(tools, have, even) {
  const { between, chance, pick } = tools;
  if (even) return [drawTable(tools, even)];
  const size = chance(0.05) ? 0 : between(0.2, 3);
  const keep = pick([0, 1, 0.5, between(0.2, 0.99), between(0.9, 0.999)]);
  const geometric = { curve: "geometric", size, keep };
  const ceiling = pick([null, null, between(0.5, 3)]);
  const power = { curve: "power", size: size * 5, have, exponent: between(0.1, 2), ceiling };
  const logarithmic = { curve: "logarithmic", size, have };
  return pick([[geometric], [power], [logarithmic], [drawTable(tools, even)], [geometric, logarithmic]]);
}

/** Any kinds of limit and of gains; with whole numbers as worths (`even`) many plans are equal. */
function drawProblem(index) {
  const tools = makeTools(1000 + index);
  const { between, whole, chance, pick } = tools;
  const even = index % 2 === 1;
  const size = pick([1, 2, 2, 3, 3, 4]);
  const most = [0, 25, 20, 10, 6][size];
  const names = ["a", "b", "c", "d"].slice(0, size);
  const tasks = names.map((name) => {
    const lot = chance(0.2) ? pick([2, 3, 5]) : 1;
    const top = chance(0.3) ? whole(1, most) : most;
    const pool = chance(0.3) ? whole(1, most) : null;
    const last = Math.floor(Math.min(top, pool ?? top) / lot) * lot;
    const least = chance(0.2) ? whole(0, last) : 0;
    const lots = [Math.ceil(least / lot), last / lot];
    const frozen = chance(0.1) ? whole(...lots) * lot : null;
    const prices = [[0, whole(1, 30)]];
    while (chance(0.25)) prices.push([prices.at(-1)[0] + whole(1, 5), whole(1, 40)]);
    return {
      name, have: pick([0, 1, 10, 300]), weight: chance(0.25) ? pick([0, 0.5, 2, 3]) : 1,
      pool, least, most: top, frozen, lot, fee: chance(0.25) ? whole(1, 40) : 0, prices,
      implies: size > 1 && chance(0.2) ? [pick(names.filter((each) => each !== name))] : [],
    };
  });
  const gains = Object.fromEntries(tasks.map(({ name, have }) => [name, drawTerms(tools, have, even)]));
  if (size > 1 && chance(0.25)) {
    const shares = Object.fromEntries(
      names.filter((_, i) => i < 2 || chance(0.4)).map((name) => [name, even ? 1 : whole(1, 4)]),
    );
    const inner = even
      ? { curve: "table", counts: [0, 1, 2, 3], worths: [0, 3, 5, 6] }
      : { curve: "geometric", size: between(0.2, 2), keep: between(0.3, 0.99) };
    gains[pick(names)].push({ ...inner, of: { shares, step: even ? 1 : 0.25 } });
  }
  const caps = Array.from({ length: chance(0.3) ? pick([1, 1, 2]) : 0 }, (_, number) => ({
    name: `hours ${number}`, unit: "0.25", limit: 0,
    use: Object.fromEntries(names.filter(() => chance(0.7)).map((name) => [name, whole(0, 9)])),
  }));
  const problem = { schema: 1, unit: "1", budget: 0, tasks, caps, count_implied: chance(0.3), gains, pairs: null, inexact: [] };
  const shared = problem.count_implied || Object.values(gains).flat().some(({ of }) => of);
  // labels that do harm are not bought; a falling curve that tasks share is refused by the writer
  if (!shared && chance(0.15)) gains.a = [{ curve: "geometric", size: -between(0.1, 1), keep: 0.9 }];
  const floors = tasks.map(listCounts).map((counts) => counts[0]);
  const ceilings = tasks.map(listCounts).map((counts) => counts.at(-1));
  const spread = (amount, share) => amount(floors) + Math.floor(share * (amount(ceilings) - amount(floors)));
  problem.budget = spread((counts) => payFor(tasks, counts), between(0, 1));
  for (const cap of caps) cap.limit = spread((counts) => useOf(cap, tasks, counts), between(0.05, 1));
  return problem;
}

/** Every count of a task that its own limits allow. */
function listCounts(task) {
  const found = [];
  for (let count = 0; count <= Math.min(task.most, task.pool ?? Infinity); count++) {
    const frozen = task.frozen === null || task.frozen === count;
    if (count % task.lot === 0 && count >= task.least && frozen) found.push(count);
  }
  return found;
}

/** Label by label, so that a mistake in the planner's own prices shows. */
function payFor(tasks, counts) {
  let total = 0;
  tasks.forEach((task, i) => {
    if (counts[i]) total += task.fee;
    for (let label = 1; label <= counts[i]; label++) {
      total += task.prices.filter(([after]) => label > after).at(-1)[1];
    }
  });
  return total;
}

const useOf = (cap, tasks, counts) =>
  tasks.reduce((total, { name }, i) => total + (cap.use[name] ?? 0) * counts[i], 0);

/** What labels are worth by the formulas as they are printed. */
function totalOf(term, labels) {
  const start = Math.max(term.have ?? 0, 1);
  if (term.curve === "geometric") {
    return term.keep === 1 ? term.size * labels : (term.size * (1 - term.keep ** labels)) / (1 - term.keep);
  }
  if (term.curve === "power") {
    const free = term.size * (start ** -term.exponent - (start + labels) ** -term.exponent);
    return Math.min(free, term.ceiling ?? Infinity);
  }
  if (term.curve === "logarithmic") return term.size * Math.log(1 + labels / start);
  const { counts, worths } = term;
  const slope = (i) => (worths[i + 1] - worths[i]) / (counts[i + 1] - counts[i]);
  const end = counts.length - 1;
  if (labels >= counts[end]) return worths[end] + Math.min(0, slope(end - 1)) * (labels - counts[end]);
  const at = counts.findLastIndex((count) => count <= labels);
  return worths[at] + slope(at) * (labels - counts[at]);
}

function valueOf({ tasks, gains, count_implied }, counts) {
  let total = 0;
  tasks.forEach((task, i) => {
    let labels = counts[i];
    if (count_implied) {
      tasks.forEach((other, j) => (labels += other.implies.includes(task.name) ? counts[j] : 0));
      labels = Math.max(Math.min(labels, task.pool ?? Infinity), counts[i]);
    }
    for (const term of gains[task.name]) {
      const mixed = (shares) => tasks.reduce((sum, { name }, j) => sum + (shares[name] ?? 0) * counts[j], 0);
      total += task.weight * totalOf(term, term.of ? mixed(term.of.shares) * term.of.step : labels);
    }
  });
  return total;
}

/** All plans that break no limit. */
function listPlans({ tasks, caps, budget }) {
  let plans = [[]];
  for (const task of tasks) plans = plans.flatMap((plan) => listCounts(task).map((count) => [...plan, count]));
  return plans.filter(
    (plan) => payFor(tasks, plan) <= budget && caps.every((cap) => useOf(cap, tasks, plan) <= cap.limit),
  );
}

/** The first of plans within a share of the best: least money, then more of earlier tasks. */
function findFirst(plans, share) {
  const best = plans.reduce((most, { worth }) => Math.max(most, worth), -Infinity);
  const equal = plans.filter(({ worth }) => worth >= best - share * best);
  const order = (a, b) => a.money - b.money || a.counts.reduce((sign, each, i) => sign || b.counts[i] - each, 0);
  return { best, first: equal.sort(order)[0].counts };
}

function check(index) {
  const problem = drawProblem(index);
  const floors = valueOf(problem, problem.tasks.map((task) => listCounts(task)[0]));
  const plans = listPlans(problem).map((counts) => ({
    counts, money: payFor(problem.tasks, counts), worth: valueOf(problem, counts) - floors,
  }));
  const answer = solve(problem);
  const mine = plans.find(({ counts }) => counts.join() === answer.counts?.join());
  const [near, far] = [findFirst(plans, 2e-13), findFirst(plans, 1e-10)];
  const wrong = (what) => ({ index, what, answer, ...near });
  if (!mine) return wrong("breaks a limit");
  if (mine.worth < near.best - 1e-9 * near.best) return wrong("is worth less");
  if (answer.spent !== mine.money || !answer.exact || !answer.settled) return wrong("is not what it says");
  if (Math.abs(answer.value - floors - mine.worth) > 1e-9 * (Math.abs(floors) + mine.worth)) return wrong("says another value");
  // a plan that is just as far from the best as equal plans may be is left to rounding
  const clear = near.first.join() === far.first.join();
  return clear && mine.counts.join() !== near.first.join() ? wrong("is not the first of equals") : null;
}

const { first, last } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const indices = Array.from({ length: last - first }, (_, i) => first + i);
const wrong = indices.map(check).filter((found) => found !== null);
process.stdout.write(JSON.stringify({ tried: indices.length, wrong: wrong.slice(0, 5) }));
