"""Files that a node writes about itself: status, round reports, groups, and curves for trackers."""
