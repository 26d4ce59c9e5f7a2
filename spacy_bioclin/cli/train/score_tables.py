"""Print the scores of `bioclin evaluate` as tables."""

from typing import Any

import typer

from ..tables import print_table

COLUMNS = ("Label", "Gold", "Found", "P", "R", "F1", "95 %")


def print_layer(layer: str, scores: dict[str, Any]) -> None:
    """Print the scores of a layer of spans.

    layer (str): "ents" or a key of doc.spans.
    scores (dict[str, Any]): See `layer_metrics`.
    """
    strict, relaxed = scores["strict"], scores["relaxed"]["micro"]
    n_docs = scores["docs_per_label"]
    columns: tuple[str, ...] = COLUMNS
    rows = [[label, *_cells(figures)] for label, figures in strict["per_type"].items()]
    if set(n_docs.values()) - {scores["docs"]}:  # not every document was annotated for every label
        columns = (*COLUMNS, "Docs")
        rows = [[*row, str(n_docs[row[0]])] for row in rows]
    print_table(
        rows,
        columns,
        title=f"{layer}: strict scores in %, {scores['docs']} documents",
        right=columns[1:],
        footer=("micro", *_cells(strict["micro"]), *[""] * (len(columns) - len(COLUMNS))),
    )
    typer.echo(
        f"macro F1 {100 * strict['macro']['f']:.2f}, relaxed micro F1"
        f" {100 * relaxed['f']:.2f} (95 %: {_interval(relaxed['f_interval'])})"
    )
    if scores["linking"]:
        _print_linking(scores["linking"])
    if scores["official"]:
        for name, figures in scores["official"]["scores"].items():
            shown = "  ".join(f"{key} {value:.4f}" for key, value in figures.items())
            typer.echo(f"official {scores['official']['task']} {name}: {shown}")


def print_relations(relations_key: str, scores: dict[str, Any]) -> None:
    """Print the scores of relations.

    relations_key (str): Which relations.
    scores (dict[str, Any]): See `relation_metrics`.
    """
    titles = {
        "predicted_entities": "between the entities that the pipeline finds",
        "gold_entities": "between the gold entities",
    }
    for name, title in titles.items():
        if (figures := scores[name]) is None:
            continue
        what = f"{relations_key}{' of concepts' if figures['level'] == 'concept' else ''}"
        print_table(
            [[label, *_cells(of_label)] for label, of_label in figures["per_type"].items()],
            COLUMNS,
            title=f"{what}, {title}: scores in %, {figures['docs']} documents",
            right=COLUMNS[1:],
            footer=("micro", *_cells(figures["micro"])),
        )
        typer.echo(f"macro F1 {100 * figures['macro']['f']:.2f}")


def print_categories(component: str, scores: dict[str, Any]) -> None:
    """Print the scores of a component that writes doc.cats.

    component (str): Its name.
    scores (dict[str, Any]): What its scorer returns; figures of labels have a table of their own.
    """
    single = [[key, _show(value)] for key, value in scores.items() if not isinstance(value, dict)]
    print_table(single, ("Score", "Value"), title=f"{component}: categories", right=("Value",))
    for key, per_label in scores.items():
        figures = per_label if isinstance(per_label, dict) else {}
        rows = {label: each for label, each in figures.items() if isinstance(each, dict)}
        if rows:
            columns = list(dict.fromkeys(name for each in rows.values() for name in each))
            print_table(
                [
                    [label, *(_show(each.get(name)) for name in columns)]
                    for label, each in rows.items()
                ],
                ("Label", *columns),
                title=f"{component}: {key}",
                right=columns,
            )


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value)


def _print_linking(linking: dict[str, Any]) -> None:
    whole, figures = linking["end_to_end"]["mentions"], linking["biosyn"]
    recall = "  ".join(
        f"R@{key[1:]} {100 * value:.2f}" for key, value in figures.items() if key[1:].isdigit()
    )
    typer.echo(
        f"linking of the {figures['n']} mentions found (of {linking['n_gold']}): accuracy"
        f" {100 * figures['acc']:.2f} (95 %: {_interval(figures['acc_interval'])}), strict"
        f" {100 * linking['strict']['acc']:.2f}  {recall}  MRR {100 * figures['mrr']:.2f}"
    )
    interval = _interval(whole["f_interval"])
    typer.echo(f"offsets and id: F1 {100 * whole['f']:.2f} (95 %: {interval})")


def _cells(figures: dict[str, Any]) -> list[str]:
    gold, found = figures["tp"] + figures["fn"], figures["tp"] + figures["fp"]
    prf = [f"{100 * figures[key]:.2f}" for key in "prf"]
    return [str(gold), str(found), *prf, _interval(figures["f_interval"])]


def _interval(bounds: list[float]) -> str:
    low, high = (100 * bound for bound in bounds)
    return f"{low:.1f}–{high:.1f}"
