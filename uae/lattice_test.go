package uae_test
func latticeSubjects() []subject { return nil }
