"""truerank inside other packages: ir_measures, ranx and ir_datasets. Nothing here is imported unless you ask for it."""
