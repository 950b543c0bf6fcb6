"""Definitions, references, renames, and the errors that an edit brings.

A server only reads, so it runs in the sandbox of a command that only looks, as a task of the session from the first
question on. It is never cancelled but asked to end and waited for, each step within a bound. The disk is the truth:
before each question, open files that have changed are read again, and the server is told which others changed. What it
says is read item by item, and what is not understood is left out (docs/adr/0013). An edit that is not understood
refuses a whole rename. Columns are counted here, since models count badly.

A rename asks the server three times: for its effects, for the question, and when it runs. It is refused if anything
changed between them.

An error after an edit is new if no error before had the same words on a line with the same text. Both texts are given
to the server as they were, so that a late answer is still about them. A server that tells by itself needs two seconds
of silence for each text, and gets the new one first.
"""
