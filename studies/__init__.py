"""The paper's case studies, and one on delayed impact, as a user of felicific writes them: ``python -m studies``."""
