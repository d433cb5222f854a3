"""What any process of codezero needs: console and logs, the state folder and its lock, stopping, a database."""
