"""Words, values, rules and ports. Standard library only; opens no socket, starts no task. Read it first."""
