"""What an attacker with a local account tries: clients that break every rule, and races made certain."""
