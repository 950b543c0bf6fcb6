"""Who may do what: rules, modes and the gate."""
