"""How notes are found that end the process that reads them, with workers that are no processes."""

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.parallel import WorkerDied
from spacy_bioclin.runner.engines.deadly import MAX_DEADLY, find_deadly, work_around_deadly
from spacy_bioclin.runner.engines.local import map_with_workers
from spacy_bioclin.runner.parts import Part
from spacy_bioclin.runner.records import Record
from spacy_bioclin.runner.work import Done


def make_part(n, number=0):
    return Part(number, [Record(i, f"line {i}", {}) for i in range(1, n + 1)], [])


class Worker:
    """A worker that dies of some records, and at some of its tries."""

    def __init__(self, deadly=(), dies_at=(), starting=False):
        self.deadly, self.dies_at, self.starting = set(deadly), set(dies_at), starting
        self.seen = []

    def work(self, part):
        numbers = [record.number for record in part.records]
        self.seen.append(numbers)
        if self.starting or len(self.seen) in self.dies_at or self.deadly & set(numbers):
            raise WorkerDied(starting=self.starting)
        refused = [{"place": record.place, "reason": "died"} for record in part.deadly]
        return Done(str(numbers).encode(), {"written": len(numbers)}, refused)

    def close(self):
        pass


def read(done):
    return done.data.decode(), [row["place"] for row in done.refused]


@pytest.mark.parametrize("deadly", [{1}, {8}, {3, 4}, {2, 7, 8}])
def test_deadly_notes_are_left_out_and_no_others(deadly):
    done = work_around_deadly(Worker(deadly), make_part(8), "")
    rest = [number for number in range(1, 9) if number not in deadly]
    assert read(done) == (str(rest), [f"line {number}" for number in sorted(deadly)])


@pytest.mark.parametrize("dies_at", [{1}, {1, 2}, {1, 2, 3}, {2, 4}])
def test_a_worker_that_is_killed_from_outside_costs_no_note(dies_at):
    done = work_around_deadly(Worker(dies_at=dies_at), make_part(8), "")
    assert read(done) == ("[1, 2, 3, 4, 5, 6, 7, 8]", [])


def test_the_only_note_is_tried_twice_alone():
    worker = Worker({1})
    assert read(work_around_deadly(worker, make_part(1), "")) == ("[]", ["line 1"])
    assert worker.seen == [[1], [1], []]


def test_a_note_is_not_deadly_for_having_died_once_alone():
    # 1, 2: all; 3: probe; 4: the half [1, 2]; 5: [1] alone, killed from outside; 6: [1] again.
    worker = Worker(dies_at={1, 2, 4, 5})
    assert read(work_around_deadly(worker, make_part(4), "")) == ("[1, 2, 3, 4]", [])
    assert worker.seen[:6] == [[1, 2, 3, 4]] * 2 + [[1], [1, 2], [1], [1]]


def test_if_every_note_is_deadly_the_notes_are_not_the_reason():
    worker = Worker(range(1, 501))
    with pytest.raises(BioclinError, match=r"line 1 to line 500 dies.*use fewer"):
        work_around_deadly(worker, make_part(500), "use fewer")
    assert len(worker.seen) == 2 + 3 * 2  # and not a thousand


def test_too_many_deadly_notes_stop_the_run():
    records = make_part(100).records
    for n, wanted in ((MAX_DEADLY, MAX_DEADLY), (MAX_DEADLY + 1, None)):
        deadly = set(range(10, 10 + n))
        found = find_deadly(records, lambda some, d=deadly: any(r.number in d for r in some))
        assert (found and len(found)) == wanted


def test_notes_that_only_together_are_too_much_are_an_error():
    class Small(Worker):
        def work(self, part):
            if len(part.records) > 4:
                raise WorkerDied
            return super().work(part)

    with pytest.raises(BioclinError, match="not because of a few"):
        work_around_deadly(Small(), make_part(8), "")


def test_workers_that_cannot_start_are_an_error():
    worker = Worker(starting=True)
    with pytest.raises(BioclinError, match=r"while it loaded the pipeline.*use fewer"):
        work_around_deadly(worker, make_part(8), "use fewer")
    assert len(worker.seen) == 2


def test_workers_are_replaced_and_order_is_kept():
    made = []

    def make():
        made.append(Worker({3}))
        return made[-1]

    parts = [make_part(4, number) for number in range(20)]
    found = list(map_with_workers(make, 3, iter(parts), ""))
    assert [part.number for part, _ in found] == list(range(20))
    assert [read(done) for _, done in found] == [("[1, 2, 4]", ["line 3"])] * 20
    assert len(made) > 20  # each death has cost a worker


def test_no_more_parts_are_read_than_workers_need():
    read_parts = []

    def parts():
        for number in range(100):
            read_parts.append(number)
            yield make_part(1, number)

    stream = map_with_workers(Worker, 2, parts(), "")
    next(stream)
    assert len(read_parts) == 1 + 2 * 2
    stream.close()


def test_an_error_ends_the_other_workers():
    class Failing(Worker):
        def work(self, part):
            if part.number == 3:
                raise BioclinError("stop")
            return super().work(part)

    with pytest.raises(BioclinError, match="stop"):
        list(map_with_workers(Failing, 2, (make_part(1, n) for n in range(50)), ""))


def test_an_error_at_the_start_of_a_worker_reaches_the_caller():
    def make():
        raise BioclinError("no such pipeline")

    with pytest.raises(BioclinError, match="no such pipeline"):
        list(map_with_workers(make, 2, (make_part(1, n) for n in range(9)), ""))
