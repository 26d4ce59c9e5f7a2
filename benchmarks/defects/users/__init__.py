"""What broke in users' hands: cases by subject."""
