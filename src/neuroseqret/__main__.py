"""`python -m neuroseqret`: the command without a script on the path."""

from neuroseqret.cli.main import run

if __name__ == "__main__":
    run()
