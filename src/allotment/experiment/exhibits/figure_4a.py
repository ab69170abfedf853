"""Figure 4 a: what more labels of a task do for itself and for the other."""

from __future__ import annotations

from typing import Any

from allotment.experiment.casebook import Casebook
from allotment.experiment.drawings import draw_lines
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown, dump_mean, spell_mean
from allotment.experiment.outcomes import Mean, find_mean
from allotment.job import Job

MULTIPLES = (0.5, 1, 2, 4, 8)
"""of the labels at hand that are added"""


class Figure4a(Exhibit):
    about = "gain of each task of VOC with more labels of its own and of the other"
    data = "voc"

    def list_sizes(self, book: Casebook) -> list[int]:
        return [round(times * book.case.have) for times in MULTIPLES]

    def list_trainings(self, book: Casebook) -> list[Job]:
        outcomes = book.outcomes
        jobs = book.train_out(outcomes.nothing)
        for size in self.list_sizes(book):
            for task in book.case.tasks:
                jobs += book.train_out(outcomes.repeat({task: size}))
        return jobs

    def find_lines(self, book: Casebook) -> dict[str, list[Mean]]:
        outcomes, found = book.outcomes, {}
        for source in book.case.tasks:
            gains = [
                outcomes.find_gains(outcomes.repeat({source: size}))
                for size in self.list_sizes(book)
            ]
            for place, target in enumerate(book.case.tasks):
                means = [find_mean(each[..., place]) for each in gains]
                found[f"{target}, with labels of {source}"] = means
        return found

    def show(self, book: Casebook) -> Shown:
        lines, sizes = self.find_lines(book), self.list_sizes(book)

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            draw_lines(axes, sizes, lines)
            axes.set_xlabel("labels added")
            axes.set_ylabel("gain over the labels at hand, %")

        rows = tuple(
            (str(size), *(spell_mean(means[place]) for means in lines.values()))
            for place, size in enumerate(sizes)
        )
        values = {name: [dump_mean(each) for each in means] for name, means in lines.items()}
        title = "Figure 4 a: more labels of a task, for itself and for the other"
        return Shown(title, (ResultTable("", ("labels added", *lines), rows),), (), values, draw)


EXHIBIT = Figure4a()
