"""What needs both estimates and plans: what measuring costs, how far it can be trusted, and which
way has paid."""
