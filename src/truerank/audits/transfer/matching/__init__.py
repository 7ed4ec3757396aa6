"""Which document of a version is which document of another: links between versions, and how they are found."""
