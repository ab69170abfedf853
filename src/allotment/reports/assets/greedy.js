// A good plan at once, with which the search begins. As in src/allotment/solver/greedy.py.

import { complete, fits, rise, takes, usedBy } from "./model.js";
import { choiceOf, dot, respond } from "./prices.js";

const MOST_BUYS = 120;

/** What everyone takes at prices just high enough to fit, then the best buys that still do. */
export function fill(model, part, answer, feasible) {
  const counts = shrink(model, part, feasible);
  const wanted = choiceOf(model, answer);
  for (let i = 0; i < model.tasks; i++) {
    if (wanted[i] <= counts[i]) continue;
    counts[i] = afford(model, counts, i, wanted[i]);
    if (model.limits.length > 1) break; // what it takes may be better left to others
  }
  return growPlan(model, part, counts, answer.prices);
}

/** The answer to the lowest multiple of the prices whose answer fits. */
function shrink(model, part, feasible) {
  // a link's price only says how tasks share its worth
  const raise = (factor) => feasible.prices.map((each, row) => (row < model.plain ? factor : 1) * each);
  const ask = (factor) => choiceOf(model, respond(model, part, raise(factor)));
  let [low, high] = [1, 1];
  let found = choiceOf(model, feasible);
  while (!fits(model, found) && high < 1e6) {
    [low, high] = [high, high * 2];
    found = ask(high);
  }
  if (!fits(model, found)) return part.low.slice(0, model.tasks);
  for (let turn = 0; high > 1 && turn < 20; turn++) {
    const middle = (low + high) / 2;
    const trial = ask(middle);
    if (fits(model, trial)) [high, found] = [middle, trial];
    else low = middle;
  }
  return found;
}

/** Buy what is worth most for what it takes, a quarter of what is left at a time, then single lots. */
function growPlan(model, part, given, prices) {
  const counts = given.slice();
  const highest = Math.max(...prices.slice(0, model.plain));
  // a limit without a price still counts a little, so that of two equal buys the smaller one wins
  const rates = prices.slice(0, model.plain).map((each) => (highest ? Math.max(each, 1e-9 * highest) : 1));
  for (let turn = 0; turn < MOST_BUYS; turn++) {
    const used = usedBy(model, counts);
    const slack = used.map((each, row) => model.limits[row] - each);
    const all = complete(model, counts);
    const fed = model.variables.slice(model.tasks).map((variable, l) => rise(variable, all[model.tasks + l], 1));
    let top = { density: 0 };
    for (let i = 0; i < model.tasks; i++) {
      const variable = model.variables[i];
      const { lot } = variable.arms[0];
      if (counts[i] + lot > part.high[i]) continue;
      const before = takes(variable, counts[i]);
      const step = takes(variable, counts[i] + lot).map((each, row) => each - before[row]);
      if (slack.some((left, row) => step[row] > left)) continue;
      let worth = rise(variable, counts[i], lot);
      fed.forEach((each, l) => (worth -= each * variable.arms[0].use[model.plain + l] * lot));
      const density = worth / Math.max(dot(rates, step), 1e-300);
      if (density > top.density) top = { density, task: i, step, lot };
    }
    if (!(top.density > 0)) break;
    const times = Math.floor(Math.min(...slack.map((left, row) => left / Math.max(top.step[row], 1))) / 4);
    const bulk = Math.min(counts[top.task] + Math.max(times, 1) * top.lot, part.high[top.task]);
    counts[top.task] = afford(model, counts, top.task, bulk);
  }
  return counts;
}

/** The most of one task, up to `wanted`, that fits beside the other counts. */
function afford(model, counts, task, wanted) {
  const { lot } = model.variables[task].arms[0];
  const trial = counts.slice();
  let [low, high] = [Math.floor(counts[task] / lot), Math.floor(wanted / lot)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    trial[task] = middle * lot;
    if (fits(model, trial)) low = middle;
    else high = middle - 1;
  }
  return Math.max(low * lot, counts[task]);
}
