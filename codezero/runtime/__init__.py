"""Services for every process of codezero: console and logs, the state folder and its lock, stopping, databases."""
