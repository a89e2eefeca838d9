"""A branch as source: the loop over the rows, queues, indexes, searches, disposal, absences."""
