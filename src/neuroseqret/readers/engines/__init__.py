"""What the formats share.

- `lists.py`: tables with one row per sequence and its events in lists
- `long_table.py`: tables with one row per event
- `parquet.py`: Parquet files and folders of them
- `list_parquet.py`: Parquet with one row per sequence, read in little memory
- `times.py`: times of any type to float64
- `marks.py`: marks of any type to int32, and their names
- `other_columns.py`: names and types of all other columns
- `values.py`: what times, marks and columns share
- `json_rows.py`: JSON objects to a table
- `text.py`: text files, plain or compressed
- `csv_table.py`: a CSV file as a table with one row per event
- `quotes.py`: quoted fields and line numbers of CSV files
- `formulas.py`: text that spreadsheets would run as a formula, made harmless and back
- `damage.py`: errors of other libraries as one line for the user
"""
