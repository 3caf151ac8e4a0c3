"""The figures of the report, each as SVG."""
