"""The bar of a long call: who sees it, and when its clock starts anew."""

from bayeslink import progress


def test_progress_is_shown_to_people_only(monkeypatch, capsys):
    with progress.bar() as tell:
        tell("sampling: 40%")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.bar(show=True) as tell:
        tell("reading A")
        tell("sampling: 40%")
        tell("sampling: 80%")
    assert "sampling" in capsys.readouterr().err
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    with progress.bar(show=True) as tell:
        tell("sampling: 40%")
    assert capsys.readouterr().err == ""


def test_the_clock_of_the_bar_goes_on_while_only_numbers_change(monkeypatch):
    from rich.progress import Progress

    anew = []
    monkeypatch.setattr(Progress, "reset", lambda *_, **__: anew.append(message))
    with progress.bar(show=True) as tell:
        for message in (
            "2 of 10 modules: 20%",
            "3 of 10 modules: 30%",
            "sampling: 1%",
            "sampling: 2%",
        ):
            tell(message)
    assert anew == ["2 of 10 modules: 20%", "sampling: 1%"]
