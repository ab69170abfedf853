// The planner of allotment for the page: the exact plan of a problem (see advice/plain_problem.py).
//
//   maximise  sum over v of g_v(x_v)   with   use . x + fixed <= limits,   x_v in whole lots
//
// A variable v is a task's count, or the argument of a curve that several tasks feed. Its counts lie
// on arms: ranges on which money is a straight line (a price tier; nothing bought, before a fee).
// Row 0 of the limits is money, then come the caps, then a link for each shared curve, which takes
// at most what its tasks put in. Everything is counted from the floors, what must be bought anyway.
//
// It is solved as in src/allotment/solver. For prices y >= 0 of the limits no plan is worth more than
//   D(y) = y . limits + sum over v of max_x (g_v(x) - y . use_v x),
// and a plan falls short of D(y) by exactly the sum of its losses: each variable's distance from its
// own best answer to y, and y times what is left of each limit. So a plan within `width` of the bound
// is made of counts that lose at most `width` each. They are few, because curves bend; all of them are
// put together, task by task. Where that would be too many, the region is split in two.
//
// Plans whose worth beyond the floors differs by rounding only (EQUAL) are equal: of these it is the
// one of least money, then the one with more of earlier tasks. So the last digits of `exp`, in which
// machines differ, decide nothing. Amounts are whole numbers below 2^53 throughout.

import { prepare, riseOf } from "./curves.js";
import { build, ceilingOf, findClashes, floorOf, priceOf, spendOf } from "./model.js";
import { whole } from "./prices.js";
import { maximise, settleTies } from "./search.js";

const PROVED = 1e-9; // a gap of at most this share of the worth is called none

/** How many labels each task gets from a plan, implied ones included where they count. */
function labelsOf(problem, counts) {
  if (!problem.count_implied) return counts;
  return problem.tasks.map((task, i) => {
    const implied = problem.tasks.map((other, j) => (other.implies.includes(task.name) ? counts[j] : 0));
    const more = implied.reduce((a, b) => a + b, 0);
    return more ? Math.min(counts[i] + more, Math.max(task.pool ?? Infinity, counts[i])) : counts[i];
  });
}

/** Each task's own gain from these counts, before weights. */
export function gainsOf(problem, counts, from = counts.map(() => 0)) {
  const [before, after] = [labelsOf(problem, from), labelsOf(problem, counts)];
  const mix = (term, plan) =>
    problem.tasks.reduce((sum, task, i) => sum + (term.of.shares[task.name] ?? 0) * plan[i], 0) * term.of.step;
  return problem.tasks.map((task, i) =>
    problem.gains[task.name].reduce((total, given) => {
      const term = prepare(given, 1);
      const [low, high] = given.of ? [mix(given, from), mix(given, counts)] : [before[i], after[i]];
      return total + (high >= low ? riseOf([term], low, high - low) : -riseOf([term], high, low - high));
    }, 0),
  );
}

/** The sum of weight x gain. What must be bought is added apart, so that it takes no digit of the rest. */
export function valueOf(problem, counts) {
  const floors = problem.tasks.map(floorOf);
  if (floors.every((floor) => floor === 0)) return weigh(problem, gainsOf(problem, counts));
  return weigh(problem, gainsOf(problem, floors)) + weigh(problem, gainsOf(problem, counts, floors));
}

const weigh = (problem, gains) =>
  gains.reduce((total, gain, i) => total + problem.tasks[i].weight * gain, 0);

/** Whether the rest of the money would pay for a lot that is worth something: then a cap is scarce. */
function isIdle(problem, counts, spent) {
  const floors = problem.tasks.map(floorOf);
  const tiny = 1e-12 * Math.abs(weigh(problem, gainsOf(problem, counts, floors)));
  return problem.tasks.some((task, i) => {
    const more = counts.slice();
    more[i] += task.lot;
    if (more[i] > ceilingOf(task)) return false;
    const left = problem.budget - spent - priceOf(task, more[i]) + priceOf(task, counts[i]);
    return left >= 0 && weigh(problem, gainsOf(problem, more, counts)) > tiny;
  });
}

/**
 * The exact plan of a problem: {feasible, clashes, counts, spent, unspent, value, gains, gap, exact,
 * settled, moneyWorth}. Money is in the problem's units; `counts` and `gains` are in task order.
 *
 * `gap` is by how much a better plan could be worth more: 0 when `exact`. `settled` is false where
 * more plans are equally good than could be looked through. `moneyWorth` is that of one more unit.
 */
export function solve(problem) {
  const clashes = findClashes(problem);
  if (clashes.length) return { feasible: false, clashes };
  const model = build(problem);
  const root = whole(model);
  const solution = maximise(model, root);
  const { counts: more, settled } = settleTies(model, root, solution);
  const counts = more.map((each, i) => each + model.variables[i].base);
  const spent = spendOf(problem, counts);
  const gap = solution.gap <= PROVED * Math.abs(solution.worth) ? 0 : solution.gap;
  const [price] = solution.answer.prices;
  const scarce = price * model.limits[0] > 1e-12 * solution.answer.bound;
  const idle = problem.caps.length > 0 && isIdle(problem, counts, spent);
  return {
    feasible: true,
    clashes,
    counts,
    spent,
    unspent: problem.budget - spent,
    value: valueOf(problem, counts),
    gains: gainsOf(problem, counts),
    gap,
    exact: gap === 0 && !(problem.inexact ?? []).length,
    settled,
    moneyWorth: scarce && !idle ? price : 0,
  };
}

/** The exact plan for each of some budgets, in units of money. */
export const frontier = (problem, budgets) =>
  budgets.map((budget) => ({ budget, ...solve({ ...problem, budget }) }));

/**
 * The problem with other weights, in task order.
 *
 * Where gains were estimated, harm that labels of one task do to others is taken off their own worth,
 * by the tasks' weights, since a curve that falls would not be concave (Estimates.mean_gains).
 */
export function reweigh(problem, weights) {
  const tasks = problem.tasks.map((task, i) => ({ ...task, weight: weights[i] }));
  if (!problem.pairs) return { ...problem, tasks };
  const { law, shapes } = problem.pairs;
  const worths = foldHarm(problem.pairs.worths, weights);
  const curve = (i, j) =>
    law === "power"
      ? { curve: "power", size: worths[i][j], have: tasks[j].have, exponent: shapes[j], ceiling: null }
      : { curve: "geometric", size: worths[i][j], keep: shapes[j] };
  const gains = {};
  for (const [i, task] of tasks.entries()) {
    const others = tasks.flatMap((other, j) =>
      j !== i && worths[i][j] > 0
        ? [{ ...curve(i, j), of: { shares: { [other.name]: 1 }, step: 1 } }]
        : [],
    );
    gains[task.name] = [curve(i, i), ...others];
  }
  return { ...problem, tasks, gains };
}

/** The same worth of each task's labels for all tasks together, with no cell below 0 off the diagonal. */
function foldHarm(worths, weights) {
  const folded = worths.map((row) => row.slice());
  for (const [j, weight] of weights.entries()) {
    const weigh = (column) =>
      weight > 0 ? column.reduce((sum, each, i) => sum + (i === j ? 0 : weights[i] * each), 0) / weight : 0;
    const column = folded.map((row) => row[j]);
    let own = column[j] + weigh(column.map((each) => Math.min(each, 0)));
    let help = column.map((each) => Math.max(each, 0));
    const total = weigh(help);
    if (own < 0 && help.some((each, i) => i !== j && each > 0)) {
      // what the own worth cannot bear comes off the help
      const left = Math.max(0, total + own);
      help = help.map((each) => (total > 0 ? each * (left / total) : 0));
      own = Math.min(0, total + own);
    }
    folded.forEach((row, i) => (row[j] = i === j ? own : help[i]));
  }
  return folded;
}
