"""Makes saved models known to the Auto classes of transformers, without the seconds that an import of the models takes.

The Auto classes get a stand-in for the configuration, which imports `bert` for the first saved model.
"""

from typing import Any

from transformers import AutoConfig

from .configuration import OperatorConfig


class SavedConfig(OperatorConfig):
    """A stand-in for OperatorConfig, which AutoConfig finds by the `model_type` of a saved model."""

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **others: Any) -> OperatorConfig:
        """Makes a configuration from a saved config.json, and registers the models with the Auto classes."""
        # AutoConfig calls this method. The import registers the models; at the import of the package, it would cost
        # every user some seconds.
        from . import bert

        return bert.OperatorConfig.from_dict(config_dict, **others)


AutoConfig.register(SavedConfig.model_type, SavedConfig)
