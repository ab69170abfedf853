// The search for the best plan and, of equal ones, for that of least money, then by task order. As in
// src/allotment/solver/search.py.

import { fits, usedBy, worthOf } from "./model.js";
import { choiceOf, findPrices, highestPrices, respond } from "./prices.js";
import { fill } from "./greedy.js";
import { LONGEST_LIST, WIDEST, listPlans, secondLosses, windowOf } from "./lists.js";

const EQUAL = 2e-13; // plans that differ by this share of what is decided are equal: a thousand last digits
const NOISE = 2 ** -50; // rounding of a worth, as a share of it, for each of its terms
const SETTLED = 9e-10; // a plan within this share of its bound is improved only where that is cheap
const SHORT_LIST = 3_000; // the same where only a last digit is at stake
const MOST_REGIONS = 300;
const MOST_WORK = 3_000_000; // partial plans in all, about a second
const MOST_TOGETHER = 5; // tasks that are varied together to improve a plan
const MOST_TRIED = 30; // tasks that are varied at all to improve it

/** The counts of greatest worth in a region; with a `target`, any that reach it. */
export function maximise(model, root, target = Infinity) {
  const [first, feasible] = findPrices(model, root);
  const scale = Math.max(Math.abs(first.bound), 1e-200);
  const best = { counts: null, worth: -Infinity, work: 0, unseen: -Infinity };
  best.noise = NOISE * scale * (2 + model.variables.length);
  best.goal = () => (target === Infinity ? best.worth : target);
  best.offer = (counts) => {
    const worth = worthOf(model, counts);
    if (worth > best.worth && fits(model, counts)) Object.assign(best, { counts, worth });
  };
  best.offer(root.low.slice(0, model.tasks));
  best.offer(fill(model, root, first, feasible));
  const queue = [{ bound: first.bound, part: root, answer: first }];
  const [mostRegions, mostWork] = target === Infinity ? [MOST_REGIONS, MOST_WORK] : [30, MOST_WORK / 30];
  for (let regions = 0; queue.length && regions < mostRegions && best.work < mostWork; regions++) {
    queue.sort((a, b) => a.bound - b.bound);
    const gap = queue.at(-1).bound - best.goal();
    if (gap < -best.noise || best.worth >= target) break;
    if (regions && target === Infinity && gap <= SETTLED * best.worth) break;
    let { part, answer } = queue.pop();
    if (regions) {
      const [near, inside] = findPrices(model, part, answer.prices);
      if (near.bound < best.goal() - best.noise) continue;
      answer = near;
      best.offer(fill(model, part, near, inside));
    }
    if (exhaust(model, part, answer, best)) continue;
    for (const half of split(model, part, answer, best)) {
      if (!fits(model, half.low)) continue;
      const after = respond(model, half, answer.prices);
      const bound = Math.min(after.bound, answer.bound);
      if (bound >= best.goal() - best.noise) queue.push({ bound, part: half, answer: after });
    }
  }
  const left = queue.reduce((most, { bound }) => Math.max(most, bound), best.unseen);
  return { ...best, answer: first, gap: Math.max(0, left - best.worth) };
}

const inside = (part, counts) => counts.map((count, i) => Math.min(Math.max(count, part.low[i]), part.high[i]));

/** Look for the best plan of a region; true if nothing in it needs another look. */
function exhaust(model, part, answer, best) {
  const second = secondLosses(model, part, answer);
  const list = (width, options) => {
    const found = listPlans(model, part, answer, inside(part, best.counts), width, { ...options, second });
    best.work += found.work;
    if (found.counts) best.offer(found.counts);
    return found;
  };
  // change a few counts at a time, those that lose least by it: often enough to come near the bound
  const improve = (widest) => {
    const order = second.map((_, i) => i).sort((a, b) => second[a] - second[b]);
    for (let from = 0; from < MOST_TRIED; from += MOST_TOGETHER) {
      const gap = answer.bound - best.worth;
      const core = order.slice(from, from + MOST_TOGETHER).filter((i) => second[i] <= gap);
      if (!core.length || gap <= (from ? SETTLED * answer.bound : best.noise)) break;
      list(gap, { core: core.sort((a, b) => a - b), widest });
    }
  };
  improve(2);
  let width = Math.max((answer.bound - best.worth) / 4096, best.noise);
  for (;;) {
    const gap = answer.bound - best.worth;
    if (gap <= best.noise || best.worth >= best.goal() + best.noise) return true;
    const settled = gap <= SETTLED * answer.bound;
    const found = list(width, { longest: settled ? SHORT_LIST : LONGEST_LIST });
    if (!found.whole) {
      if (!settled) improve(8);
      if (answer.bound - best.worth > SETTLED * answer.bound) return false;
      best.unseen = Math.max(best.unseen, answer.bound);
      return true;
    }
    // all plans within `width` were seen: the best of them is the best of all
    if (answer.bound - best.worth <= width || width >= answer.bound - best.goal() + best.noise) return true;
    width = Math.min(width * 4, answer.bound - Math.min(best.goal(), best.worth) + 2 * best.noise);
  }
}

/** Two halves of a region: between arms of which a task would take either, else through its widest window. */
function split(model, part, answer, best) {
  const width = Math.max(answer.bound - best.worth, best.noise);
  const second = secondLosses(model, part, answer);
  let top = null;
  for (let i = 0, seen = 0; i < model.tasks && seen < 20; i++) {
    if (part.low[i] >= part.high[i] || second[i] > width) continue;
    seen++;
    const { picks } = windowOf(model, part, answer, i, inside(part, best.counts)[i], width, WIDEST);
    const [first, last] = [picks[0].count, picks.at(-1).count];
    const { arms } = model.variables[i];
    const borders = arms.filter(({ low }) => first < low && low <= last).map(({ low }) => low);
    const size = (last - first) / arms[0].lot + (borders.length ? 1e18 : 0);
    const middle = picks[Math.floor(picks.length / 2)].count;
    const cut = borders.at(-1) ?? Math.max(middle, part.low[i] + arms[0].lot);
    if (top === null || size > top.size) top = { task: i, cut, size };
  }
  if (top === null) return [];
  const [high, low] = [part.high.slice(), part.low.slice()];
  high[top.task] = top.cut - model.variables[top.task].arms[0].lot;
  low[top.task] = top.cut;
  return [{ low: part.low, high }, { low, high: part.high }];
}

// ---- Ties: least money, then task order -----------------------------------------------------------------

const within = (model, money) => ({ ...model, limits: [money, ...model.limits.slice(1)] });

/** Of all plans that are as good as the best, the first; `settled` is false where they are too many to tell. */
export function settleTies(model, root, solution) {
  const enough = solution.worth * (1 - EQUAL);
  const cheapest = saveMoney(model, root, solution, enough);
  const less = within(model, cheapest.money);
  const same = cheapest.money === model.limits[0];
  const [answer] = same ? [solution.answer] : findPrices(less, root);
  const width = Math.max(answer.bound - enough, 0) + solution.noise;
  const found = listPlans(less, root, answer, cheapest.counts, width, { enough, longest: SHORT_LIST });
  const settled = found.whole && cheapest.settled && solution.gap <= solution.noise;
  return { counts: found.counts ?? cheapest.counts, settled };
}

/** The least money for which a plan is worth enough: halving, between a bound and the best plan so far. */
function saveMoney(model, root, solution, enough) {
  let counts = solution.counts;
  let high = usedBy(model, counts)[0];
  let low = Math.max(0, leastMoney(model, solution.answer, enough, solution.noise));
  let settled = true;
  if (low < high) {
    // prices of money at which what is bought is only just worth enough
    const [, ...others] = solution.answer.prices;
    const top = Math.log(highestPrices(model, root)[0] || 1);
    let [cheap, dear] = [top - 140, top];
    for (let turn = 0; turn < 60; turn++) {
      const middle = (cheap + dear) / 2;
      const answer = respond(model, root, [Math.exp(middle), ...others]);
      const trial = choiceOf(model, answer);
      low = Math.max(low, leastMoney(model, answer, enough, solution.noise));
      const good = worthOf(model, trial) >= enough;
      const money = usedBy(model, trial)[0];
      if (good && money < high && fits(model, trial)) [counts, high] = [trial, money];
      if (good) cheap = middle;
      else dear = middle;
      if (low >= high) break;
    }
  }
  for (let step = 1; low < high; ) {
    const money = Math.max(high - step, low);
    const trial = maximise(within(model, money), root, enough);
    if (trial.worth >= enough) {
      [counts, high] = [trial.counts, usedBy(model, trial.counts)[0]];
      step *= 2;
    } else {
      settled &&= trial.worth + trial.gap < enough;
      low = money + 1;
      step = Math.max(1, Math.floor((high - low) / 2));
    }
  }
  return { counts, money: high, settled };
}

/** No plan of less money than this is worth enough, by one answer to prices. */
function leastMoney(model, answer, enough, noise) {
  const [price] = answer.prices;
  if (!(price > 0)) return 0;
  return Math.ceil(model.limits[0] - (answer.bound - enough + noise) / price);
}
