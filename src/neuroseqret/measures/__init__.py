"""How good is a ranking? AP, nDCG, RR and the order of equal scores, computed here and nowhere else.

- `ranking_measures`: the measures of whole rankings, from a matrix of scores and the relevant candidates of each query.
- `list_measures`: the measures of short lists that are sorted already, such as the best 100 of a first stage.
- `ties`: an order for equal scores that favours nobody.
- `table`: every measure of every query, under the names that reports use.
"""
