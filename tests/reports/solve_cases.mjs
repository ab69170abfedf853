// Solves a list of instances: node solve_cases.mjs FILE
import { readFileSync } from "node:fs";
import { frontier, reweigh, solve } from "./solver.mjs";

const cases = JSON.parse(readFileSync(process.argv[2], "utf8"));
const answers = cases.map(({ instance, budgets, weights }) => ({
  plan: solve(instance),
  again: solve(JSON.parse(JSON.stringify(instance))),
  frontier: budgets ? frontier(instance, budgets) : null,
  reweighed: weights ? reweigh(instance, weights) : null,
}));
process.stdout.write(JSON.stringify(answers));
