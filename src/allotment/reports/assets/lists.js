// Lists: all plans near a bound. As in src/allotment/solver/listing.py.

import { complete, rise, takes, worthOf } from "./model.js";
import { answerArm, choiceOf, dot } from "./prices.js";

export const LONGEST_LIST = 20_000; // partial plans in one step of a list
export const WIDEST = 5_000; // counts of one task on either side
const MOST_VARIED = 40; // tasks whose count may as well be another; of more, no list is ever whole

/** What a count of a variable loses against its best answer to the prices. */
function lossOf(variable, top, arm, prices, count) {
  if (arm === top.arm) {
    const more = count - top.count;
    return Math.max(top.slope * more - rise(variable, top.count, more), 0);
  }
  const profit = rise(variable, 0, count) - dot(prices, arm.use) * count - prices[0] * arm.fixed;
  return Math.max(top.profit - profit, 0);
}

/** The counts of one task that a plan within `width` of the bound can have, in rising order; `whole` if all. */
export function windowOf(model, part, answer, task, centre, width, widest) {
  const variable = model.variables[task];
  const top = answer.best[task];
  const picks = [];
  let complete = true;
  for (const arm of variable.arms) {
    const low = Math.max(arm.low, part.low[task]);
    const high = Math.min(arm.high, part.high[task]);
    if (low > high) continue;
    const loss = (count) => lossOf(variable, top, arm, answer.prices, count);
    // an arm's least loss is at its own best answer; from there it only grows
    const best = arm === top.arm ? top.count : answerArm(variable, arm, low, high, dot(answer.prices, arm.use));
    if (loss(best) > width) continue;
    let from = Math.min(Math.max(centre, low), high);
    if (loss(from) > width) from = best;
    picks.push({ count: from, loss: loss(from) });
    for (const way of [arm.lot, -arm.lot]) {
      for (let count = from + way, steps = 1; count >= low && count <= high; count += way, steps++) {
        const lost = loss(count);
        if (lost > width) break;
        if (steps > widest) {
          complete = false;
          break;
        }
        picks.push({ count, loss: lost });
      }
    }
  }
  picks.sort((a, b) => a.count - b.count);
  for (const pick of picks) {
    pick.use = takes(variable, pick.count);
    pick.value = rise(variable, centre, pick.count - centre);
  }
  return { task, picks, whole: complete };
}

/** Of each task: the least loss of any count but its best, so that most need no closer look. */
export function secondLosses(model, part, answer) {
  return answer.best.slice(0, model.tasks).map((top, i) => {
    const variable = model.variables[i];
    let least = Infinity;
    for (const arm of variable.arms) {
      const low = Math.max(arm.low, part.low[i]);
      const high = Math.min(arm.high, part.high[i]);
      if (low > high) continue;
      let near = [top.count - arm.lot, top.count + arm.lot];
      if (arm !== top.arm) near = [answerArm(variable, arm, low, high, dot(answer.prices, arm.use))];
      for (const count of near) {
        if (count < low || count > high) continue;
        least = Math.min(least, lossOf(variable, top, arm, answer.prices, count));
      }
    }
    return least;
  });
}

/**
 * Put together all plans of a region within `width` of its bound.
 *
 * Gives the plan of most worth; or, with `enough`, the first in task order that is worth so much.
 * With a `core` only these tasks vary and the others keep the count of the centre.
 * `whole` is whether nothing was left out, `work` how many partial plans were looked at.
 */
export function listPlans(model, part, answer, centre, width, options = {}) {
  const { core, widest = WIDEST, longest = LONGEST_LIST, enough = null } = options;
  const second = options.second ?? secondLosses(model, part, answer);
  const varied = core ?? second.flatMap((loss, i) => (loss <= width ? [i] : []));
  const result = { counts: null, whole: !core, work: 0 };
  if (varied.length > MOST_VARIED) return { ...result, whole: false };
  const counts = core ? centre.slice() : choiceOf(model, answer);
  const windows = [];
  let wide = 0;
  for (const task of varied) {
    const window = windowOf(model, part, answer, task, centre[task], width, Math.min(widest, longest / 8));
    result.whole &&= window.whole;
    windows.push(window);
    wide += window.picks.length;
    if (wide > longest / 8) return { ...result, whole: false };
  }
  const rest = [none(model)]; // what the windows after each one take
  for (const { picks } of windows.slice(1).reverse()) rest.unshift(addSpan(rest[0], picks));
  let states = [startPlan(model, counts, centre, new Set(varied))];
  for (const [at, { picks }] of windows.entries()) {
    const work = states.length * picks.length;
    if (work > longest || result.work > 3 * longest) return { ...result, whole: false };
    result.work += work;
    const after = extend(model, answer, states, picks, rest[at], width);
    states = enough === null ? keepBest(after, model.plain) : sift(after, 0);
  }
  return { ...result, counts: pickPlan(model, answer, centre, windows, counts, states, width, enough) };
}

const none = (model) => ({ least: model.limits.map(() => 0), most: model.limits.map(() => 0) });

/** The least and the most that windows take, with those of one more. */
const addSpan = ({ least, most }, picks) => ({
  least: least.map((each, row) => each + Math.min(...picks.map(({ use }) => use[row]))),
  most: most.map((each, row) => each + Math.max(...picks.map(({ use }) => use[row]))),
});

/** The partial plan to begin with: all tasks that do not vary. */
function startPlan(model, counts, centre, varied) {
  const used = model.limits.map(() => 0);
  let value = 0; // worth against the centre
  for (let i = 0; i < model.tasks; i++) {
    if (varied.has(i)) continue;
    takes(model.variables[i], counts[i]).forEach((each, row) => (used[row] += each));
    value += rise(model.variables[i], centre[i], counts[i] - centre[i]);
  }
  return { used, value, loss: 0, before: null, count: 0 };
}

/** Every partial plan with every count of a window, less what can no longer fit or come near the bound. */
function extend(model, answer, states, picks, { least, most }, width) {
  const after = [];
  for (const state of states) {
    // more of an earlier task comes first, so the order in which plans are made is task order
    for (let p = picks.length - 1; p >= 0; p--) {
      const { loss, use, value, count } = picks[p];
      let lost = state.loss + loss; // with what can no longer be spent
      let good = lost <= width;
      for (let row = 0; good && row < model.plain; row++) {
        const slack = model.limits[row] - state.used[row] - use[row];
        good = slack >= least[row];
        if (slack > most[row]) lost += answer.prices[row] * (slack - most[row]);
      }
      if (!good || lost > width) continue;
      const used = state.used.map((each, row) => each + use[row]);
      after.push({ used, value: state.value + value, loss: state.loss + loss, before: state, count });
    }
  }
  return after;
}

/** Of partial plans those that no other beats, with as much worth for no more of money or of the first cap. */
function keepBest(states, plain) {
  states.sort((a, b) => a.used[0] - b.used[0] || b.value - a.value);
  return sift(states, plain > 1 ? 1 : 0);
}

/** Those that none before them beats, with as much worth for no more in a column and the same in later ones. */
function sift(states, column) {
  const kept = [];
  const fronts = new Map(); // by what is used in later columns: states that rise in use and in worth
  for (const state of states) {
    const later = state.used.length > column + 1;
    const key = later ? state.used.slice(column + 1).join() : "";
    if (!fronts.has(key)) fronts.set(key, []);
    const front = fronts.get(key);
    let at = 0;
    let end = front.length;
    while (at < end) {
      const middle = (at + end) >> 1;
      if (front[middle].used[column] <= state.used[column]) at = middle + 1;
      else end = middle;
    }
    if (at > 0 && front[at - 1].value >= state.value) continue;
    let stop = at;
    while (stop < front.length && front[stop].value <= state.value) stop++;
    front.splice(at, stop - at, state);
    kept.push(state);
  }
  return kept;
}

/** The best of complete plans, or the first that is worth enough: its counts. */
function pickPlan(model, answer, centre, windows, counts, states, width, enough) {
  const base = enough === null ? 0 : worthOf(model, centre);
  const all = complete(model, centre);
  let top = null;
  for (const state of states) {
    let { value, loss } = state;
    let good = true;
    for (let row = 0; row < model.plain; row++) {
      const slack = model.limits[row] - state.used[row];
      good &&= slack >= 0;
      loss += answer.prices[row] * slack;
    }
    for (let link = 0; link < model.links; link++) {
      const [v, row] = [model.tasks + link, model.plain + link];
      const variable = model.variables[v];
      const given = model.limits[row] - state.used[row];
      const taken = Math.min(given, variable.arms[0].high);
      value += rise(variable, all[v], taken - all[v]);
      loss += lossOf(variable, answer.best[v], variable.arms[0], answer.prices, taken);
      loss += answer.prices[row] * (given - taken);
    }
    if (!good || loss > width) continue;
    if (enough !== null) {
      if (base + value < enough) continue;
      top = { state };
      break;
    }
    if (top === null || value > top.value) top = { state, value };
  }
  if (top === null) return null;
  const found = counts.slice();
  let { state } = top;
  for (let at = windows.length - 1; at >= 0; at--, state = state.before) found[windows[at].task] = state.count;
  return found;
}
