"""A branch as a program: the loop over the rows, queues, indexes, searches, disposal, absences."""
