"""Questionnaires and consent of an experiment: settings, shipped forms, answers and scores."""
