"""What a whole process of ours is set up with: its event loop, its garbage collection, and how many files it may open."""
