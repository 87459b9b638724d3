"""placeholder"""
WORKLOADS = {}
