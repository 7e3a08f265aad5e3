"""The command line: one file per command, plus what the commands share.

Commands, by the words that call them:

- `fit`: `fit.py`
- `embed`: `embed.py`
- `index create`, `index add`, `index remove`, `index compact`, `index info`, `index check`: `index.py`;
  adding is in `adding.py`
- `search`: `search.py`, which prints with `hits_output.py`
- `evaluate`: `evaluate.py`
- `data info`, `data convert`, `data prepare`: `data_info.py`, `data_convert.py`, `data_prepare.py`
- `serve`: `serve.py`
- `keys create`, `keys list`, `keys revoke`: `keys.py`
- `demo`: `demo.py`, with its figures in `demo_figures.py`, its picture in `demo_picture.py` and its last lines, the
  commands to try next, in `demo_closing.py`

Shared:

- `main.py`: puts the commands together; `run` is the entry point of the script and of `python -m neuroseqret`
- `running.py`: turns a user's mistake into one line and exit code 2
- `event_files.py`: the options of every command that reads a file of sequences (`--column`, `--format`, `--repair`)
- `numbers.py`: checks options that are floating-point numbers
- `listing.py`: help texts that list the names of methods and formats
- `text_table.py`: tables that fit the terminal and are whole in a pipe
- `places.py`: the folder of an index, or the address of a server
- `console.py`: standard output, standard error and progress bars

A command imports what it needs inside its function, so that `--help` answers at once.
"""
