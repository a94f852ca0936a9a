"""Section of a report about agents that place trials and let them grow."""

from pathlib import Path

from rota.figures.joint import METHODS, lines
from rota.learning.joint.evaluate import JointComparison, in_words
from rota.report import blocks
from rota.report.blocks import Glance, Head, Section, TableCell, table
from rota.report.timelines import number

GREY = "#626262"


def joint_comparison_section(at: int, found: JointComparison, command: str, folder: Path) -> Section:
    """Return the section of a joint agent, compared with the rule that was best in training, and others."""
    off = {line.column: line for line in lines(found)}
    heads = [
        Head("method"),
        Head("accuracy", "Accuracy of the best trial at the deadline: the mean over cases", "most"),
        Head("against the rule", "Difference in percentage points, on the same cases"),
        Head("95 % interval", "Interval of that over networks and data sets"),
    ]
    rows = []
    for column, name in METHODS.items():
        line, mean = off.get(column), 100.0 * found.mean(column)
        low = None if line is None else number(line.low)
        rows.append(
            [
                TableCell(name, f"{name}: {found.rule}" if line is None else name),
                TableCell(mean, f"{mean:.2f} %"),
                TableCell(*((0.0, "") if line is None else (line.mean, f"{line.mean:+.2f}"))),
                TableCell(low, "" if line is None or low is None else f"{line.low:+.2f} to {line.high:+.2f}"),
            ]
        )
    says = f"{100.0 * found.mean('agent'):.2f} % accuracy at the deadline, on average"
    rule = f"{found.rule}: {100.0 * found.mean('best_rule'):.2f} %"
    return Section(
        id=f"joint-{at}",
        kind="an agent that places trials and lets them grow",
        title=f"Placement and growth in one agent: {folder.name}",
        about=f"{in_words(found)}.",
        glance=Glance("joint agent", blocks.both(GREY), says, rule, [], won=False),
        blocks=[table("Accuracy at the deadline", heads, rows, [blocks.both(GREY)] * len(rows))],
        commands=(command,),
    )
