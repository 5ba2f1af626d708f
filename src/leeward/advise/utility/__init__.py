"""What a release keeps of a plan: a figure, a floor and a verdict for each of its lines."""
