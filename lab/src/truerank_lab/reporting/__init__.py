"""Reports on experiments: the tables and the figure of the papers, from the results of a grid."""
