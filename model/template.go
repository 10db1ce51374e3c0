package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// hfTemplate reads the chat template of a checkpoint directory: a file of its
// own, or an entry of tokenizer_config.json. It returns "" if there is none.
func hfTemplate(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
	if err == nil {
		return string(b), nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("model: %w", err)
	}
	path := filepath.Join(dir, "tokenizer_config.json")
	if b, err = os.ReadFile(path); errors.Is(err, os.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("model: %w", err)
	}
	var cfg struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(strictJSON(b), &cfg); err != nil {
		return "", fmt.Errorf("model: %s: expected a JSON object: %w", path, err)
	}
	if len(cfg.Template) == 0 || string(cfg.Template) == "null" {
		return "", nil
	}
	var one string
	if json.Unmarshal(cfg.Template, &one) == nil {
		return one, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(cfg.Template, &named); err != nil {
		return "", fmt.Errorf("model: %s: chat_template: expected a string or a list of named templates", path)
	}
	for _, t := range named {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}
