"""Options that libraries all over the tree have in common."""

# For sources that make kernels and programs, and do next to nothing while these run: a program with a network in it
# (fuselage_model) has them too, and they are half as large so.
SMALL = ["-Os", "-fomit-frame-pointer"]
